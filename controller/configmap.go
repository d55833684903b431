package controller

import (
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"myproxy.dev/operator/api/v1alpha1"
)

const configFile = "nginx.conf"

// configMap holds one configuration, for ever: a change is another ConfigMap, so it rolls out, and a pod that restarts
// finds what it started with.
func configMap(proxy *v1alpha1.MyProxy, configHash, conf string) *corev1ac.ConfigMapApplyConfiguration {
	fleet := fleetOf(proxy)
	return corev1ac.ConfigMap(configMapName(fleet, configHash), proxy.Namespace).
		WithLabels(childLabels(fleet)).
		WithOwnerReferences(owner(proxy)).
		WithImmutable(true).
		WithData(map[string]string{configFile: conf})
}
