// A node of a real cluster, for tests of `kopf ui --pod`.
//
// Serves /portForward as kubelets do, with the code that container runtimes use for it, and
// registers a Node and a Pod that lead there. The "Pod" is this machine: a forwarded port is the
// same port on 127.0.0.1. Prints "ready", and removes everything when its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
)

const name = "kopf-portforward"

type forwarder struct{}

// PortForward connects the stream with the port on this machine.
func (forwarder) PortForward(_ context.Context, pod string, _ types.UID, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	log.Printf("forwarding port %d of %s", port, pod)
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("nothing listens on port %d: %w", port, err)
	}
	defer connection.Close()
	go io.Copy(connection, stream)
	_, err = io.Copy(stream, connection)
	return err
}

func serve(response http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) != 3 || parts[0] != "portForward" {
		http.NotFound(response, request)
		return
	}
	options, err := portforward.NewV4Options(request)
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(response, request, forwarder{}, parts[2], "", options, time.Hour, time.Minute, portforward.SupportedProtocols)
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)
	kubelet := httptest.NewTLSServer(http.HandlerFunc(serve))
	port := kubelet.Listener.Addr().(*net.TCPAddr).Port
	register(client, int32(port))
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, now := context.Background(), int64(0)
	_ = client.CoreV1().Pods(name).Delete(ctx, name, meta.DeleteOptions{GracePeriodSeconds: &now})
	_ = client.CoreV1().Namespaces().Delete(ctx, name, meta.DeleteOptions{})
	_ = client.CoreV1().Nodes().Delete(ctx, name, meta.DeleteOptions{})
}

// register creates the Node and its Pod.
func register(client kubernetes.Interface, port int32) {
	ctx := context.Background()
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: name}}
	_, err := client.CoreV1().Nodes().Create(ctx, node, meta.CreateOptions{})
	check(err)
	// Controllers change new nodes, so this must not depend on the version.
	status := fmt.Sprintf(`{"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
		"daemonEndpoints": {"kubeletEndpoint": {"Port": %d}}}}`, port)
	_, err = client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(status), meta.PatchOptions{}, "status")
	check(err)
	_, err = client.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
	check(err)
	pod := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec:       core.PodSpec{NodeName: name, Containers: []core.Container{{Name: "operator", Image: "operator"}}},
	}
	for {
		_, err := client.CoreV1().Pods(name).Create(ctx, pod, meta.CreateOptions{})
		// The namespace has no ServiceAccount at first.
		if errors.IsForbidden(err) {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		check(err)
		running := []byte(`{"status": {"phase": "Running"}}`)
		_, err = client.CoreV1().Pods(name).Patch(ctx, name, types.StrategicMergePatchType, running, meta.PatchOptions{}, "status")
		check(err)
		return
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
