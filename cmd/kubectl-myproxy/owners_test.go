package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// TestOwners runs the command line as a user does, against a real API server.
func TestOwners(t *testing.T) {
	server := startServer(t)
	for _, w := range writes {
		w.send(t, server)
	}

	for name, tc := range map[string]struct {
		args    []string
		golden  string // a file in testdata
		request string // the only one beside discovery's
	}{
		"a name alone is a MyProxy's": {
			[]string{"shop"},
			"owners_myproxy.txt",
			"GET /apis/gateway.myproxy.dev/v1alpha1/namespaces/shops/myproxies/shop",
		},
		"TYPE/NAME, by a short name": {
			[]string{"deploy/shop"}, "owners_deployment.txt", "GET /apis/apps/v1/namespaces/shops/deployments/shop",
		},
		"TYPE NAME": {
			[]string{"deployment", "shop"}, "owners_deployment.txt", "GET /apis/apps/v1/namespaces/shops/deployments/shop",
		},
		"an object that two managers apply": {
			[]string{"configmaps/shared"}, "owners_configmap.txt", "GET /api/v1/namespaces/shops/configmaps/shared",
		},
		"an object of another namespace": {
			[]string{"cm/other", "-n", "default"}, "owners_other.txt", "GET /api/v1/namespaces/default/configmaps/other",
		},
		"an object without a namespace": {
			[]string{"namespace/shops"}, "owners_namespace.txt", "GET /api/v1/namespaces/shops",
		},
		"an object whose managedFields were wiped": {
			[]string{"cm/wiped"}, "owners_wiped.txt", "GET /api/v1/namespaces/shops/configmaps/wiped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.asked()
			code, stdout, stderr := server.owners(tc.args...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			wantGolden(t, tc.golden, stdout)
			if asked := server.asked(); !slices.Equal(asked, []string{tc.request}) {
				t.Errorf("asked for %q", asked)
			}
		})
	}

	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such MyProxy":    {[]string{"none"}, `error: myproxies.gateway.myproxy.dev "none" not found`},
		"no such object":     {[]string{"deploy/none"}, `error: deployments.apps "none" not found`},
		"no such type":       {[]string{"bogus/none"}, `error: the server doesn't have a resource type "bogus"`},
		"types":              {[]string{"cm,deploy", "shop"}, `error: you may only specify a single resource type`},
		"a type and no name": {[]string{"deploy/"}, `error: arguments in resource/name form must have a single resource and name`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := server.owners(tc.args...)
			wantError(t, code, stdout, stderr, tc.want)
		})
	}
}

// write is one manager's write of an object: all of them are patches.
type write struct {
	resource                     schema.GroupVersionResource
	namespace, name, subresource string
	manager                      string
	kind                         types.PatchType
	body                         string
}

var (
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	myProxies   = schema.GroupVersionResource{Group: "gateway.myproxy.dev", Version: "v1alpha1", Resource: "myproxies"}
)

// writes are made in this order; the namespace of most is that of the kubeconfig.
var writes = []write{
	{namespaces, "", "shops", "", "kubectl", types.ApplyYAMLPatchType, `
apiVersion: v1
kind: Namespace
metadata: {name: shops, labels: {team: basket}}`},
	{myProxies, "shops", "shop", "", "kubectl", types.ApplyYAMLPatchType, `
apiVersion: gateway.myproxy.dev/v1alpha1
kind: MyProxy
metadata: {name: shop, labels: {team: basket}}
spec: {image: "nginx:1.30", replicas: 2}`},
	{myProxies, "shops", "shop", "status", "myproxy-status", types.ApplyYAMLPatchType, `
apiVersion: gateway.myproxy.dev/v1alpha1
kind: MyProxy
metadata: {name: shop}
status:
  pod_names: []
  conditions:
  - {type: Ready, status: "False", reason: RollingOut, message: "", lastTransitionTime: "2026-08-01T12:00:00Z"}`},
	{deployments, "shops", "shop", "", "myproxy-operator", types.ApplyYAMLPatchType, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: nginx, image: "nginx:1.30", ports: [{containerPort: 8080}]}]}`},
	{
		deployments, "shops", "shop", "status", "kube-controller-manager", types.MergePatchType,
		`{"status": {"replicas": 2, "observedGeneration": 1}}`,
	},
	{deployments, "shops", "shop", "scale", "autoscaler", types.MergePatchType, `{"spec": {"replicas": 3}}`},
	{configMaps, "shops", "shared", "", "shape", types.ApplyYAMLPatchType, `
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {color: red, shape: square}`},
	{configMaps, "shops", "shared", "", "color", types.ApplyYAMLPatchType, `
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {color: red}`},
	{configMaps, "default", "other", "", "kubectl", types.ApplyYAMLPatchType, `
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {here: "yes"}`},
	{configMaps, "shops", "wiped", "", "kubectl", types.ApplyYAMLPatchType, `
apiVersion: v1
kind: ConfigMap
metadata: {name: wiped}
data: {here: "no"}`},
	{configMaps, "shops", "wiped", "", "eraser", types.MergePatchType, `{"metadata": {"managedFields": [{}]}}`},
}

func (w write) send(t *testing.T, server *apiServer) {
	t.Helper()
	objects, err := dynamic.NewForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = objects.Resource(w.resource).Namespace(w.namespace).Patch(t.Context(), w.name, w.kind, []byte(w.body),
		metav1.PatchOptions{FieldManager: w.manager}, strings.Fields(w.subresource)...)
	if err != nil {
		t.Fatalf("%s writes %s %s: %v", w.manager, w.resource.Resource, w.name, err)
	}
}

func TestErrorsAreOneLine(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("apiVersion: v1\nkind: Config\nclusters: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no name":             {nil, "error: name one object, as [TYPE/]NAME or TYPE NAME"},
		"three names":         {[]string{"a", "b", "c"}, "error: name one object, as [TYPE/]NAME or TYPE NAME"},
		"an unknown flag":     {[]string{"--bogus"}, "error: unknown flag: --bogus"},
		"no kubeconfig":       {[]string{"--kubeconfig", "/none", "shop"}, "error: stat /none: no such file or directory"},
		"a broken kubeconfig": {[]string{"--kubeconfig", broken, "shop"}, "error: error loading config file "},
		"an unknown context":  {[]string{"--kubeconfig", os.DevNull, "--context", "bogus", "shop"}, "error: invalid configuration: context was not found for specified context: bogus"},
		"nobody who answers":  {[]string{"--server", "http://127.0.0.1:1", "--cache-dir", t.TempDir(), "shop"}, `error: Get "http://127.0.0.1:1/api?timeout=32s": `},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := owners(tc.args...)
			wantError(t, code, stdout, stderr, tc.want)
		})
	}
}

// wantError wants exit code 1 and one line on stderr that starts so.
func wantError(t *testing.T, code int, stdout, stderr, want string) {
	t.Helper()
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
	if line, rest, _ := strings.Cut(stderr, "\n"); !strings.HasPrefix(line, want) || rest != "" || !strings.HasSuffix(stderr, "\n") {
		t.Errorf("stderr is %q, want %q", stderr, want)
	}
}
