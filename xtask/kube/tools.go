//go:build tools

// Package kube pins the control plane that judges the embedded API server.
//
// Nothing here is compiled by itself: the imports keep `go mod tidy` from
// dropping the modules, and `cargo xtask kube build` builds the named commands.
package kube

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
