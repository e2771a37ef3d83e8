// Two operators of controller-runtime that compete for one lease, and a client-go informer with
// WatchList, on the cluster of KUBECONFIG. Ends with an error if anything is not as expected.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	namespace = "clients-go"
	finalizer = "clients.kopf.dev/copy"
	timeout   = 30 * time.Second
)

// A copier keeps a Secret with the data of each ConfigMap that is labelled `copy=yes`.
type copier struct {
	client.Client
	name string
}

func (c *copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := c.Get(ctx, request.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if source.Labels["copy"] != "yes" {
		return ctrl.Result{}, nil
	}
	if !source.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(&source, finalizer) {
			return ctrl.Result{}, c.Update(ctx, &source)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(&source, finalizer) {
		if err := c.Update(ctx, &source); err != nil {
			return ctrl.Result{}, err
		}
	}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client, &secret, func() error {
		secret.StringData = source.Data
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "clients.kopf.dev/by", c.name)
		return controllerutil.SetControllerReference(&source, &secret, c.Scheme())
	})
	return ctrl.Result{}, err
}

// Starts one operator. The result stops it and waits for its end.
func operator(config *rest.Config, name string) (stop func(), elected <-chan struct{}, err error) {
	lease, renew, retry := 3*time.Second, 2*time.Second, 500*time.Millisecond
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "copier",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease,
		RenewDeadline:                 &renew,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return nil, nil, err
	}
	unnamed := true
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Named("copier").
		WithOptions(controller.Options{SkipNameValidation: &unnamed}).
		Complete(&copier{manager.GetClient(), name})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		if err := manager.Start(ctx); err != nil {
			fmt.Println(name, "ended with", err)
		}
	}()
	return func() { cancel(); done.Wait() }, manager.Elected(), nil
}

func eventually(what string, check func() (bool, error)) error {
	deadline := time.Now().Add(timeout)
	for {
		ok, err := check()
		if ok && err == nil {
			fmt.Println("ok:", what)
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %v (%v)", what, timeout, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func configMap(name string, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"copy": "yes"}},
		Data:       map[string]string{"k": value},
	}
}

func operators(ctx context.Context, config *rest.Config, clients kubernetes.Interface) error {
	stopFirst, elected, err := operator(config, "first")
	if err != nil {
		return err
	}
	<-elected
	stopSecond, electedLater, err := operator(config, "second")
	if err != nil {
		return err
	}
	defer stopSecond()
	maps, secrets := clients.CoreV1().ConfigMaps(namespace), clients.CoreV1().Secrets(namespace)
	copied := func(name, value, by string) func() (bool, error) {
		return func() (bool, error) {
			secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return string(secret.Data["k"]) == value && secret.Annotations["clients.kopf.dev/by"] == by, nil
		}
	}
	if _, err := maps.Create(ctx, configMap("a", "1"), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := eventually("the leader copies", copied("a", "1", "first")); err != nil {
		return err
	}
	stopFirst()
	<-electedLater
	if _, err := maps.Create(ctx, configMap("b", "2"), metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := eventually("the other one takes over", copied("b", "2", "second")); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return eventually("source and copy are gone", func() (bool, error) {
		_, source := maps.Get(ctx, "a", metav1.GetOptions{})
		_, copied := secrets.Get(ctx, "a", metav1.GetOptions{})
		return apierrors.IsNotFound(source) && apierrors.IsNotFound(copied), nil
	})
}

func informer(ctx context.Context, clients kubernetes.Interface) error {
	var mutex sync.Mutex
	seen := map[string]int{}
	count := func(what string) { mutex.Lock(); seen[what]++; mutex.Unlock() }
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	shared := factory.Core().V1().ConfigMaps().Informer()
	_, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { count("add " + object.(*corev1.ConfigMap).Name) },
		UpdateFunc: func(_, object any) { count("update " + object.(*corev1.ConfigMap).Name) },
		DeleteFunc: func(object any) { count("delete " + object.(*corev1.ConfigMap).Name) },
	})
	if err != nil {
		return err
	}
	maps := clients.CoreV1().ConfigMaps(namespace)
	plain := func(name, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": value}}
	}
	for index := range 100 {
		if _, err := maps.Create(ctx, plain(fmt.Sprintf("early-%d", index), "1"), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), shared.HasSynced) {
		return fmt.Errorf("the informer does not sync")
	}
	if _, err := maps.Create(ctx, plain("late", "1"), metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := maps.Update(ctx, plain("late", "2"), metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "early-7", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return eventually("the informer with WatchList sees it all", func() (bool, error) {
		mutex.Lock()
		defer mutex.Unlock()
		return seen["add early-99"] == 1 && seen["add late"] == 1 && seen["update late"] == 1 &&
			seen["delete early-7"] == 1, nil
	})
}

func run() error {
	ctrl.SetLogger(zap.New())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 1000
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := clients.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := operators(ctx, config, clients); err != nil {
		return err
	}
	return informer(ctx, clients)
}

func main() {
	if err := run(); err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}
