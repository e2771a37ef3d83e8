# What all demonstrations share: sourced by `cargo xtask demos` before examples/NAME/demo.sh.
# KUBECONFIG is the cluster, LOG the output of the operator, OPERATOR its process, PROGRAM its file.

# says TEXT: waits until the operator has printed or logged this.
says() {
    { set +x; } 2>/dev/null
    local deadline=$((SECONDS + 30))
    while [ "$SECONDS" -lt "$deadline" ]; do
        if grep -qF -- "$1" "$LOG"; then
            set -x
            return 0
        fi
        sleep 0.1
    done
    echo "the operator has never said: $1"
    return 1
}

# eventually COMMAND...: waits until the command succeeds.
eventually() {
    { set +x; } 2>/dev/null
    local deadline=$((SECONDS + 30))
    while [ "$SECONDS" -lt "$deadline" ]; do
        if "$@" >/dev/null 2>&1; then
            set -x
            return 0
        fi
        sleep 0.1
    done
    set -x
    "$@"
}

# shows TEXT COMMAND...: waits until the output of the command contains this.
shows() {
    { set +x; } 2>/dev/null
    local text=$1 output=
    shift
    local deadline=$((SECONDS + 30))
    while [ "$SECONDS" -lt "$deadline" ]; do
        output=$("$@" 2>&1) || true
        if grep -qF -- "$text" <<<"$output"; then
            set -x
            return 0
        fi
        sleep 0.1
    done
    echo "the output of $* never contained: $text"
    echo "$output"
    return 1
}

# stop: asks the operator to stop, and waits until it has.
stop() {
    kill -INT "$OPERATOR"
    eventually gone "$OPERATOR"
}

# gone PROCESS: whether a process has ended; one that nobody has waited for yet has, too.
gone() {
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}
