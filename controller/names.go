package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"myproxy.dev/operator/api/v1alpha1"
)

// The field managers. One manager has one call site: two places that apply under one name erase each other's fields.
const (
	statusManager = "myproxy-status"
	childManager  = "myproxy-operator"
)

// The labels of children and pods.
const (
	labelFleet     = "gateway.myproxy.dev/name"     // the fleet's name: a hint of who owns it, never proof
	labelConfig    = "gateway.myproxy.dev/config"   // on pods and ReplicaSets: the configuration that they mount
	labelTemplate  = "gateway.myproxy.dev/template" // on pods and ReplicaSets: the pod template that they are of
	labelApp       = "app.kubernetes.io/name"
	labelManagedBy = "app.kubernetes.io/managed-by"

	annotationRevision = "deployment.kubernetes.io/revision" // the Deployment controller's, on its ReplicaSets
	annotationSpec     = "spec"                              // in the caches only: the hash of a Deployment's spec
)

// The names in a pod.
const (
	containerNginx      = "nginx"
	containerConfigTest = "config-test"
	portHTTP            = "http"
	portHealth          = "health"
)

// The kinds of the children.
var (
	kindConfigMap  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	kindService    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	kindDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	kindReplicaSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
)

// fleetOf is the name of the MyProxy's fleet.
func fleetOf(proxy *v1alpha1.MyProxy) string {
	if proxy.Spec.Name != "" {
		return proxy.Spec.Name
	}
	return proxy.Name
}

// selectorLabels are the Deployment's selector. It is immutable once a Deployment exists: never add to it.
func selectorLabels(fleet string) map[string]string {
	return map[string]string{labelFleet: fleet, labelApp: "myproxy"}
}

// childLabels are on every child, and on every pod.
func childLabels(fleet string) map[string]string {
	all := selectorLabels(fleet)
	all[labelManagedBy] = childManager
	return all
}

// podLabels are on the pods of one configuration.
func podLabels(fleet, configHash string) map[string]string {
	all := childLabels(fleet)
	maps.Copy(all, map[string]string{labelConfig: configHash})
	return all
}

// selector is selectorLabels in the form of a label query, in the order of the keys.
func selector(fleet string) string { return labels.SelectorFromSet(selectorLabels(fleet)).String() }

// configMapName is the name of the ConfigMap of one configuration.
func configMapName(fleet, configHash string) string { return fleet + "-" + configHash }

func isPaused(proxy *v1alpha1.MyProxy) bool { return proxy.Spec.Paused != nil && *proxy.Spec.Paused }
