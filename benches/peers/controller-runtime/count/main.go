// The operator of `cargo xtask chaos --count` for controller-runtime, with leader election.
//
// Every reconciliation writes one line to the file $CALLS. It acts only if the generation has changed since the one in the status, and stores
// which call it was together with the generation. NAMESPACE has the objects and the Lease; LEASE_SECONDS is the duration of the Lease.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"bench.kopf.dev/peer/api"
)

// As many objects at a time as our operator by default.
const workers = 16

type reconciler struct {
	client.Client
	calls  *os.File
	number atomic.Int64
}

type call struct {
	ID         string  `json:"id"`
	At         float64 `json:"at"`
	Pid        int     `json:"pid"`
	UID        string  `json:"uid"`
	Generation int64   `json:"generation"`
	Acts       bool    `json:"acts"`
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget api.Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	acts := widget.Status.ObservedGeneration != widget.Generation
	now := float64(time.Now().UnixNano()) / 1e9
	id := fmt.Sprintf("%d-%d", os.Getpid(), r.number.Add(1))
	line, err := json.Marshal(call{id, now, os.Getpid(), string(widget.UID), widget.Generation, acts})
	if err != nil {
		return ctrl.Result{}, err
	}
	if _, err := r.calls.Write(append(line, '\n')); err != nil {
		return ctrl.Result{}, err
	}
	if !acts {
		return ctrl.Result{}, nil
	}
	base := widget.DeepCopy()
	widget.Status.ObservedGeneration = widget.Generation
	widget.Status.CountedBy = id
	return ctrl.Result{}, r.Status().Patch(ctx, &widget, client.MergeFrom(base))
}

// The default times of Leases, in the same proportions for another duration.
func share(lease, seconds float64) *time.Duration {
	duration := time.Duration(lease / 15 * seconds * float64(time.Second))
	return &duration
}

func run() error {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	calls, err := os.OpenFile(os.Getenv("CALLS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	namespace := os.Getenv("NAMESPACE")
	lease := 15.0
	if text, isSet := os.LookupEnv("LEASE_SECONDS"); isSet {
		if lease, err = strconv.ParseFloat(text, 64); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},

		LeaderElection:          true,
		LeaderElectionID:        "count",
		LeaderElectionNamespace: namespace,
		// The program ends when the manager has stopped.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 share(lease, 15),
		RenewDeadline:                 share(lease, 10),
		RetryPeriod:                   share(lease, 2),
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&api.Widget{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{Client: manager.GetClient(), calls: calls})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "the operator failed")
		os.Exit(1)
	}
}
