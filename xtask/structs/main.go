// Writes down the Go structs that error messages and template hashes of Kubernetes print.
//
// Validation errors print internal types (`core.PodSpec`) with `%#v` or compare them with go-cmp,
// and controllers hash a dump of the published ones (`v1.PodTemplateSpec`). For every type that is
// reached from there, this program writes the fields in Go's order: their Go name, their JSON name,
// what they hold, and their Go type. The JSON names of internal types, which have no tags, are those
// of the published type beside them.
//
// `cargo xtask pack` runs it.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/policy"
)

// Roots that are printed in full, with what pointers point to.
var full = [][2]any{
	{core.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
	{core.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{}},
	{core.PersistentVolumeSource{}, corev1.PersistentVolumeSource{}},
	{corev1.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
}

// Roots that are printed with `%#v`, which shows pointers as addresses.
var shallow = [][2]any{
	{core.ObjectReference{}, corev1.ObjectReference{}},
	{policy.PodDisruptionBudgetSpec{}, policyv1.PodDisruptionBudgetSpec{}},
	{batch.PodFailurePolicy{}, batchv1.PodFailurePolicy{}},
	{batch.SuccessPolicy{}, batchv1.SuccessPolicy{}},
	{flowcontrol.FlowSchemaSpec{}, flowcontrolv1.FlowSchemaSpec{}},
	{flowcontrol.PriorityLevelConfigurationSpec{}, flowcontrolv1.PriorityLevelConfigurationSpec{}},
}

// Types that have their own JSON form.
var special = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):        "t",
	reflect.TypeOf(resource.Quantity{}):  "q",
	reflect.TypeOf(intstr.IntOrString{}): "i",
}

type writer struct {
	bodies  map[string]string
	follows bool
}

func main() {
	w := writer{bodies: map[string]string{}, follows: true}
	for _, pair := range full {
		w.write(reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1]), reflect.TypeOf(pair[1]))
	}
	w.follows = false
	for _, pair := range shallow {
		w.write(reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1]), reflect.TypeOf(pair[1]))
	}
	shared := map[string][]string{}
	for name, body := range w.bodies {
		shared[body] = append(shared[body], name)
	}
	lines := []string{}
	for body, names := range shared {
		sort.Strings(names)
		lines = append(lines, strings.Join(names, "=")+"\n"+body)
	}
	sort.Strings(lines)
	fmt.Println("# Go structs of Kubernetes 1.33 (k8s.io/kubernetes, Apache-2.0); made by xtask/structs.")
	fmt.Println("# Fields: Go name, JSON name (. embedded, ^ of the struct around), kind, Go type (~ own package).")
	fmt.Print(strings.Join(lines, ""))
}

// write describes a struct; names come from the published type, or from the one that holds it.
func (w *writer) write(internal, published, holder reflect.Type) {
	name := internal.String()
	if _, known := w.bodies[name]; known {
		return
	}
	w.bodies[name] = ""
	own := strings.SplitAfter(name, ".")[0]
	body := strings.Builder{}
	for index := range internal.NumField() {
		field := internal.Field(index)
		if !field.IsExported() || field.Name == "TypeMeta" {
			continue
		}
		json, twin := find(published, field.Name)
		if json == "" {
			json, twin = find(holder, field.Name)
			json = "^" + json
		}
		if twin == nil {
			panic("no JSON name of " + name + "." + field.Name)
		}
		if field.Anonymous && twin.Kind() == reflect.Struct && json != "metadata" {
			json = "."
		}
		kind := w.kind(field.Type, twin, published)
		shown := strings.ReplaceAll(field.Type.String(), own, "~")
		fmt.Fprintf(&body, " %s %s %s %s\n", field.Name, json, kind, shown)
	}
	w.bodies[name] = body.String()
}

func find(published reflect.Type, name string) (string, reflect.Type) {
	field, found := published.FieldByName(name)
	if !found {
		return "", nil
	}
	json := strings.Split(field.Tag.Get("json"), ",")[0]
	if json == "" {
		json = "."
	}
	return json, field.Type
}

// kind is a letter for the value; pointers, lists and maps are followed by the kind of what they hold.
func (w *writer) kind(internal, published, holder reflect.Type) string {
	if letter, known := special[internal]; known {
		return letter
	}
	switch internal.Kind() {
	case reflect.Pointer:
		if !w.follows && internal.Elem().Kind() == reflect.Struct {
			return "p@"
		}
		return "p" + w.kind(internal.Elem(), published.Elem(), holder)
	case reflect.Slice:
		if internal.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		return "l" + w.kind(internal.Elem(), published.Elem(), holder)
	case reflect.Map:
		letter := "m"
		if internal.Key().Implements(reflect.TypeFor[fmt.Stringer]()) {
			letter = "M"
		}
		return letter + w.kind(internal.Elem(), published.Elem(), holder)
	case reflect.Struct:
		w.write(internal, published, holder)
		return "@"
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	}
	return "n"
}
