// Extracts the JSON shapes of the built-in Kubernetes types from their Go sources.
//
// The API server decodes into Go structs and encodes them again, which drops empty optional
// fields and adds empty required ones. This program writes down, for every type that a kind
// reaches, its fields in order: name, whether it may be omitted, and what it holds.
//
// Usage: go run ./xtask/shapes DIR-OF-K8S.IO-MODULES VERSION > crates/kopf-apimachinery/src/shape/go-shapes.txt
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

type pkg struct {
	path  string
	group string
	types map[string]ast.Expr
	// imports per file are merged: the packages use one alias per import.
	imports map[string]string
}

var packages = map[string]*pkg{}

// Types with their own JSON form.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "T",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "M",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "D",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "J",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "I",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "Q",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "R",
	"k8s.io/apimachinery/pkg/types.UID":                                                     "s",
	"k8s.io/apimachinery/pkg/types.NodeName":                                                "s",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "J",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "J",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "J",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "J",
}

func load(root, version, module, sub string) {
	dir := filepath.Join(root, module+"@"+version, sub)
	path := "k8s.io/" + module
	if sub != "" {
		path += "/" + sub
	}
	files, err := parser.ParseDir(token.NewFileSet(), dir, func(info os.FileInfo) bool {
		return !strings.HasSuffix(info.Name(), "_test.go") && !strings.HasPrefix(info.Name(), "zz_") &&
			!strings.HasPrefix(info.Name(), "generated")
	}, 0)
	if err != nil {
		panic(err)
	}
	loaded := &pkg{path: path, types: map[string]ast.Expr{}, imports: map[string]string{}, group: "-"}
	for _, one := range files {
		for _, file := range one.Files {
			collect(loaded, file)
		}
	}
	packages[path] = loaded
}

func collect(loaded *pkg, file *ast.File) {
	for _, spec := range file.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		name := filepath.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		loaded.imports[name] = target
	}
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				loaded.types[spec.Name.Name] = spec.Type
			case *ast.ValueSpec:
				if len(spec.Names) == 1 && spec.Names[0].Name == "GroupName" && len(spec.Values) == 1 {
					if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
						loaded.group, _ = strconv.Unquote(literal.Value)
					}
				}
			}
		}
	}
}

// code describes a type: s n b y (string, number, bool, bytes), T M D I Q R J (special), *X, []X,
// {}X and @name for structs. Structs are queued.
func code(in *pkg, expr ast.Expr, queue *[]string) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return "*" + code(in, expr.X, queue)
	case *ast.ArrayType:
		if ident, ok := expr.Elt.(*ast.Ident); ok && ident.Name == "byte" {
			return "y"
		}
		return "[]" + code(in, expr.Elt, queue)
	case *ast.MapType:
		return "{}" + code(in, expr.Value, queue)
	case *ast.SelectorExpr:
		target := in.imports[expr.X.(*ast.Ident).Name]
		return named(target, expr.Sel.Name, queue)
	case *ast.Ident:
		switch expr.Name {
		case "string":
			return "s"
		case "bool":
			return "b"
		case "int", "int32", "int64", "uint8", "uint32", "uint64", "float64", "uint16", "int16":
			return "n"
		}
		return named(in.path, expr.Name, queue)
	}
	panic(fmt.Sprintf("%T in %s", expr, in.path))
}

func named(path, name string, queue *[]string) string {
	full := path + "." + name
	if known, ok := special[full]; ok {
		return known
	}
	from, ok := packages[path]
	if !ok {
		panic("unknown package of " + full)
	}
	expr, ok := from.types[name]
	if !ok {
		panic("unknown type " + full)
	}
	if _, isStruct := expr.(*ast.StructType); isStruct {
		*queue = append(*queue, full)
		return "@" + short(full)
	}
	return code(from, expr, queue)
}

func short(full string) string {
	full = strings.TrimPrefix(full, "k8s.io/")
	full = strings.Replace(full, "apimachinery/pkg/apis/", "", 1)
	full = strings.Replace(full, "apiextensions-apiserver/pkg/apis/", "", 1)
	full = strings.Replace(full, "kube-aggregator/pkg/apis/", "", 1)
	return strings.TrimPrefix(full, "api/")
}

func fields(full string, queue *[]string, lines *[]string) {
	dot := strings.LastIndex(full, ".")
	in := packages[full[:dot]]
	for _, field := range in.types[full[dot+1:]].(*ast.StructType).Fields.List {
		tag := ""
		if field.Tag != nil {
			text, _ := strconv.Unquote(field.Tag.Value)
			tag = reflect.StructTag(text).Get("json")
		}
		parts := strings.Split(tag, ",")
		inline := len(field.Names) == 0 && parts[0] == ""
		for _, option := range parts[1:] {
			inline = inline || option == "inline"
		}
		if parts[0] == "-" {
			continue
		}
		if inline {
			var ignored []string
			target := strings.TrimPrefix(code(in, field.Type, &ignored), "*")
			if strings.HasPrefix(target, "@") && len(ignored) > 0 {
				fields(ignored[0], queue, lines)
			}
			continue
		}
		name := parts[0]
		if name == "" {
			continue
		}
		omit := "!"
		for _, option := range parts[1:] {
			if option == "omitempty" {
				omit = "?"
			}
		}
		*lines = append(*lines, fmt.Sprintf(" %s%s%s", name, omit, code(in, field.Type, queue)))
	}
}

func main() {
	root, version := os.Args[1], os.Args[2]
	apis, _ := filepath.Glob(filepath.Join(root, "api@"+version, "*", "v*"))
	for _, dir := range apis {
		sub, _ := filepath.Rel(filepath.Join(root, "api@"+version), dir)
		load(root, version, "api", sub)
	}
	load(root, version, "apimachinery", "pkg/apis/meta/v1")
	load(root, version, "apimachinery", "pkg/types")
	load(root, version, "apiextensions-apiserver", "pkg/apis/apiextensions/v1")
	load(root, version, "kube-aggregator", "pkg/apis/apiregistration/v1")
	packages["k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"].group = "apiextensions.k8s.io"
	packages["k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"].group = "apiregistration.k8s.io"

	var queue, kinds []string
	for path, in := range packages {
		version := filepath.Base(path)
		served := !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
		if in.group == "-" || !served || strings.HasSuffix(path, "meta/v1") {
			continue
		}
		for name, expr := range in.types {
			if structure, ok := expr.(*ast.StructType); ok && embedsTypeMeta(structure) && !strings.HasSuffix(name, "List") {
				full := path + "." + name
				queue = append(queue, full)
				groupVersion := in.group + "/" + filepath.Base(path)
				kinds = append(kinds, fmt.Sprintf("%s/%s %s", groupVersion, name, short(full)))
			}
		}
	}
	sort.Strings(kinds)
	sort.Strings(queue)
	done := map[string][]string{}
	for len(queue) > 0 {
		full := queue[0]
		queue = queue[1:]
		if _, ok := done[full]; ok {
			continue
		}
		lines := []string{}
		fields(full, &queue, &lines)
		done[full] = lines
	}
	for _, kind := range kinds {
		fmt.Println("=" + kind)
	}
	names := []string{}
	for full := range done {
		names = append(names, full)
	}
	sort.Strings(names)
	for _, full := range names {
		fmt.Println(short(full))
		for _, line := range done[full] {
			fmt.Println(line)
		}
	}
}

func embedsTypeMeta(structure *ast.StructType) bool {
	typeMeta := false
	for _, field := range structure.Fields.List {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok && (len(field.Names) == 0) {
			typeMeta = typeMeta || selector.Sel.Name == "TypeMeta"
		}
	}
	return typeMeta
}
