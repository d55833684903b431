// Package v1alpha1 is the API of the MyProxy operator: read myproxy_types.go as the user's manual.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=../../applyconfigurations
// +groupName=gateway.myproxy.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of this package's kinds. The generated apply configurations refer to it
// by this name.
var SchemeGroupVersion = schema.GroupVersion{Group: "gateway.myproxy.dev", Version: "v1alpha1"}

// AddToScheme adds this package's kinds to a scheme. It returns no error today.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &MyProxy{}, &MyProxyList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
