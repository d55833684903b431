package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"myproxy.dev/operator/api/v1alpha1"
)

// service is where the fleet is reached. Its type is left to others, and to the API server's default, ClusterIP: who makes it
// a NodePort keeps it.
func service(proxy *v1alpha1.MyProxy) *corev1ac.ServiceApplyConfiguration {
	fleet := fleetOf(proxy)
	return corev1ac.Service(fleet, proxy.Namespace).
		WithLabels(childLabels(fleet)).
		WithOwnerReferences(owner(proxy)).
		WithSpec(corev1ac.ServiceSpec().
			WithSelector(selectorLabels(fleet)).
			WithPorts(corev1ac.ServicePort().
				WithName(portHTTP).WithPort(80).WithProtocol(corev1.ProtocolTCP).
				WithTargetPort(intstr.FromString(portHTTP))))
}
