#!/bin/sh
# Runs an operator of the Java Operator SDK (Maven Central) on a `kopf cluster` of its own.
# Needs a JDK (17 or later), Maven and a built `kopf` (cargo build -p kopf-cli), or KOPF=path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/with_cluster.sh"
cp -r "$here/josdk/pom.xml" "$here/josdk/src" "$work"
cd "$work"
mvn -q package
java -jar target/client.jar
