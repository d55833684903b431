package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MyProxy is a fleet of nginx reverse proxies: a Deployment, a Service and their companions, all of the fleet's name.
// Its status says which pods exist and whether they serve, one watch event and one apply after it happened.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=myproxies,shortName=mpx
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Wanted,type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name=Pods,type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name=Serving,type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name=Address,type=string,JSONPath=`.status.addresses[0].value`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=Reason,type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Config,type=string,priority=1,JSONPath=`.status.configHash`
// +kubebuilder:printcolumn:name=Image,type=string,priority=1,JSONPath=`.spec.image`
// +kubebuilder:validation:XValidation:rule="has(self.spec) && has(self.spec.name) || (self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",message="metadata.name is the fleet's name where spec.name is unset: it must be a DNS-1035 label of at most 50 characters (lower case letters, digits and '-', starting with a letter, ending with a letter or digit)",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.name) ? self.spec.name : self.metadata.name) == (has(oldSelf.spec) && has(oldSelf.spec.name) ? oldSelf.spec.name : oldSelf.metadata.name)",message="the fleet's name is immutable: delete the MyProxy and create one of the new name",fieldPath=".spec.name"
type MyProxy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's standard metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the fleet that is wanted. `{}`, the default, is one pod that answers 404.
	// +optional
	// +kubebuilder:default={}
	Spec MyProxySpec `json:"spec,omitempty,omitzero"`

	// status is what the operator saw last. All of it is one server-side apply of the manager `myproxy-status`.
	// +optional
	Status MyProxyStatus `json:"status,omitempty,omitzero"`
}

// MyProxyList is a list of MyProxies.
//
// +kubebuilder:object:root=true
type MyProxyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MyProxy `json:"items"`
}

// MyProxySpec is the fleet that is wanted.
type MyProxySpec struct {
	// name is the fleet's name: that of the Deployment and the Service, and the value of the pods' label
	// `gateway.myproxy.dev/name`. A DNS-1035 label of at most 50 characters. Default: metadata.name. Immutable.
	// Where two MyProxies of a namespace claim one name, the one that controls the Deployment keeps it, else the
	// older has it; the other is told so in its condition Accepted (reason NameConflict).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be a DNS-1035 label: lower case letters, digits and '-', starting with a letter, ending with a letter or digit"
	Name string `json:"name,omitempty"`

	// replicas is the number of pods that is wanted, 0 to 10000. It is what the scale subresource reads and writes. Default: 1,
	// also where a manager that owned it alone applies without it.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the image reference of nginx, 1.28 or newer. Of it are used the program nginx, /etc/nginx/mime.types, `sh` and
	// `sleep`; its entrypoint is not. nginx runs as user and group 101. Default: the operator's --nginx-image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^((localhost|[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?([.][a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)+|[[][a-fA-F0-9:]+[]])(:[0-9]+)?/|[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?:[0-9]+/)?[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$')",message="must be an image reference: [HOST[:PORT]/]PATH[:TAG][@DIGEST], the path in lower case"
	Image string `json:"image,omitempty"`

	// imagePullPolicy is the kubelet's rule for pulling the image: Always, Never or IfNotPresent.
	// Default: Kubernetes' own (Always for the tag latest or no tag, else IfNotPresent), as of the image that the Deployment
	// was made with: a later change of the image does not change it.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// imagePullSecrets are Secrets of this namespace that the kubelet pulls the image with.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []ImagePullSecret `json:"imagePullSecrets,omitempty"`

	// resources are nginx's requests and limits, of the container that serves and of the one that tests the
	// configuration. nginx runs as many worker processes as the CPU limit says, rounded up; without one it runs two.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`

	// rollout says how new pods replace old ones.
	// +optional
	Rollout Rollout `json:"rollout,omitempty,omitzero"`

	// paused leaves the fleet's objects as they are, whatever the spec says, until it is false again: what others change or
	// delete meanwhile is put right then. The status goes on. Default: false.
	// +optional
	Paused *bool `json:"paused,omitempty"`
}

// ImagePullSecret names a Secret.
type ImagePullSecret struct {
	// name is that of a Secret of type kubernetes.io/dockerconfigjson in the MyProxy's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="must be the name of a Secret: a DNS-1123 subdomain"
	Name string `json:"name,omitempty"`
}

// Rollout says how new pods replace old ones.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!(has(self.maxSurge) && string(self.maxSurge) in ['0', '0%'] && (!has(self.maxUnavailable) || string(self.maxUnavailable) in ['0', '0%']))",message="maxSurge and maxUnavailable (default 0) can't both be 0: nothing could ever be replaced"
type Rollout struct {
	// maxSurge is how many pods may be there beyond the wanted ones during a rollout: a number, or a percentage of the
	// wanted ones, rounded up. Default: 25%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods from 0 to 10000, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// maxUnavailable is how many of the wanted pods may be missing during a rollout: a number, or a percentage of the wanted
	// ones, rounded down. With the default, 0, a configuration that nginx refuses never replaces a pod that serves.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number of pods from 0 to 10000, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// progressDeadlineSeconds is for how many seconds a rollout may bring no new pod to serve before the MyProxy is
	// Stalled. The rollout goes on all the same. Default: 600.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`
}

// MyProxyStatus is what the operator saw last. Every number and list is always there, the empty list as `[]`.
//
// +kubebuilder:validation:MinProperties=1
type MyProxyStatus struct {
	// conditions are Ready, Accepted, ConfigValid, Available and Progressing, and Stalled while it is True. A
	// condition of another type belongs to whoever wrote it and stays.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// pod_names are the names of the fleet's pods, sorted: every one that has not finished (phase Succeeded or Failed),
	// terminating ones until they are gone. A pod is of the fleet if its controller is a ReplicaSet whose controller is
	// the Deployment whose controller is this MyProxy, each by uid.
	// +optional
	// +listType=atomic
	PodNames []string `json:"pod_names,omitempty"`

	// replicas is the number of the fleet's pods, terminating ones left out.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// updatedReplicas is how many of the replicas are of the pod template that is wanted now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpdatedReplicas *int32 `json:"updatedReplicas,omitempty"`

	// readyReplicas is how many of the replicas serve: their Ready condition is True.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// selector selects the fleet's pods, in the form of a label query. An autoscaler reads it through the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Selector string `json:"selector,omitempty"`

	// configHash names the nginx configuration that is wanted: it is in the ConfigMap `<fleet>-<configHash>`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	ConfigHash string `json:"configHash,omitempty"`

	// unavailablePods are up to 10 of the pods that do not serve, sorted by name, each with the reason. A pod whose
	// containers are not started yet, with nothing wrong so far, is not one before the rollout's deadline has passed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	UnavailablePods []UnavailablePod `json:"unavailablePods,omitempty"`

	// addresses are where the fleet's Service is reached.
	// +optional
	// +listType=atomic
	Addresses []Address `json:"addresses,omitempty"`
}

// UnavailablePod is a pod that does not serve.
type UnavailablePod struct {
	// name is the pod's.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name,omitempty"`

	// reason is the kubelet's or the scheduler's word: ImagePullBackOff, CrashLoopBackOff, Unschedulable,
	// ContainersNotReady, and so on. The states of one fault that alternate have one name: ImagePullBackOff
	// is ErrImagePull too, and CrashLoopBackOff is every state of a container that failed and was not ready since.
	// +required
	// +kubebuilder:validation:MinLength=1
	Reason string `json:"reason,omitempty"`

	// message is the kubelet's sentence, without what changes by itself (the delay of a back-off): for CrashLoopBackOff
	// the last termination's message, for a refused configuration nginx's own words.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Message string `json:"message,omitempty"`
}

// Address is a place where a Service is reached.
type Address struct {
	// type is IPAddress or Hostname.
	// +required
	// +kubebuilder:validation:Enum=IPAddress;Hostname
	Type AddressType `json:"type,omitempty"`

	// value is the address itself.
	// +required
	// +kubebuilder:validation:MinLength=1
	Value string `json:"value,omitempty"`
}

// AddressType is the kind of an Address.
type AddressType string

const (
	// AddressIP is the type of an IPv4 or IPv6 address.
	AddressIP AddressType = "IPAddress"
	// AddressHostname is the type of a DNS name.
	AddressHostname AddressType = "Hostname"
)
