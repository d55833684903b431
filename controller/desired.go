package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
	"myproxy.dev/operator/controller/nginx"
)

// desired is what a MyProxy asks for.
type desired struct {
	configHash   string // of the nginx configuration
	templateHash string // of the pod template, and so of the configuration, the image and all else that pods are made of
	replicas     int32
	children     []child // in the order of their creation: no pod may start before the configuration that it mounts
}

// has tells whether a child is wanted.
func (want desired) has(id childID) bool {
	return slices.ContainsFunc(want.children, func(c child) bool { return c.id == id })
}

// child is one object of a fleet, as it is applied.
type child struct {
	id     childID
	intent string                     // the hash of config
	config *unstructured.Unstructured // an apply configuration: only what the operator sets
	needs  *childID                   // what must be there first
}

// childID names a child within its MyProxy's namespace.
type childID struct {
	kind schema.GroupVersionKind
	name string
}

// String is how messages name a child, as `Deployment shop`.
func (id childID) String() string { return id.kind.Kind + " " + id.name }

// desire is the fleet that the MyProxy asks for; defaultImage is nginx where the spec names none.
func desire(proxy *v1alpha1.MyProxy, defaultImage string) desired {
	conf := nginx.Config(workers(proxy.Spec.Resources))
	want := desired{configHash: hash([]byte(conf)), replicas: 1}
	if proxy.Spec.Replicas != nil {
		want.replicas = *proxy.Spec.Replicas
	}
	template := podTemplate(proxy, want.configHash, defaultImage)
	want.templateHash = hash(encode(template))
	template.WithLabels(map[string]string{labelTemplate: want.templateHash})

	config := newChild(configMap(proxy, want.configHash, conf))
	pods := newChild(deployment(proxy, want.replicas, template))
	pods.needs = &config.id
	want.children = []child{config, pods, newChild(service(proxy))}
	return want
}

// workers is the number of nginx's worker processes: the CPU limit, rounded up; two without one.
func workers(resources corev1.ResourceRequirements) int64 {
	if cpu, limited := resources.Limits[corev1.ResourceCPU]; limited {
		return max(1, cpu.Value())
	}
	return 2
}

func newChild(config runtime.ApplyConfiguration) child {
	data := encode(config)
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		panic(fmt.Sprintf("decode %s: %v", data, err)) // it was encoded a line above
	}
	return child{
		id:     childID{kind: object.GroupVersionKind(), name: object.GetName()},
		intent: hash(data),
		config: object,
	}
}

// owner is the reference that makes a child this MyProxy's: by it the child is found, and goes when the MyProxy goes.
func owner(proxy *v1alpha1.MyProxy) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.SchemeGroupVersion.String()).WithKind("MyProxy").
		WithName(proxy.Name).WithUID(proxy.UID).
		WithController(true).WithBlockOwnerDeletion(true)
}

// encode is the JSON of an apply configuration. Its keys are sorted or in the order of the fields: the same configuration
// gives the same bytes.
func encode(config any) []byte {
	data, err := json.Marshal(config)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", config, err)) // they are plain structs of strings and numbers
	}
	return data
}

// hash is short enough for a label and a name: 48 bits, of the few configurations that one fleet ever has.
func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}

// configsInUse are the names of the ConfigMaps that must stay: that of the intent, and those that the Deployment's template, a
// ReplicaSet or a pod names. A pod counts by its label alone: too many is on the safe side.
func configsInUse(seen observed, want desired) map[string]bool {
	fleet := seen.deployment.Name
	used := map[string]bool{
		configMapName(fleet, want.configHash):                                   true,
		configMapName(fleet, seen.deployment.Spec.Template.Labels[labelConfig]): true,
	}
	for i := range seen.replicaSets {
		used[configMapName(fleet, seen.replicaSets[i].Labels[labelConfig])] = true
	}
	for _, pod := range seen.pods {
		used[configMapName(fleet, pod.config)] = true
	}
	return used
}
