package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
	"myproxy.dev/operator/controller/nginx"
)

const (
	// configDir is where a pod finds its configuration.
	configDir = "/etc/myproxy"
	// nginxUser is the user and the group of nginx in the images of nginx.
	nginxUser int64 = 101
	// gracePeriodSeconds bounds how long a terminating pod may go on with the answers that it has begun.
	gracePeriodSeconds int64 = 60
	// revisionHistoryLimit is how many older templates, with their configurations, are kept to go back to.
	revisionHistoryLimit int32 = 2
	// defaultProgressDeadlineSeconds is spec.rollout.progressDeadlineSeconds' default.
	defaultProgressDeadlineSeconds int32 = 600
)

// writable are the directories that nginx writes to: the rest of its file system is read-only.
var writable = []struct{ name, path string }{
	{"tmp", "/tmp"},
	{"run", "/run"},
	{"cache", "/var/cache/nginx"},
	{"lib", "/var/lib/nginx"},
}

// deployment keeps the wanted number of pods of a template.
func deployment(proxy *v1alpha1.MyProxy, replicas int32, template *corev1ac.PodTemplateSpecApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
	fleet, rollout := fleetOf(proxy), proxy.Spec.Rollout
	rolling := appsv1ac.RollingUpdateDeployment().
		WithMaxSurge(intstr.FromString("25%")).
		WithMaxUnavailable(intstr.FromInt32(0))
	if rollout.MaxSurge != nil {
		rolling.WithMaxSurge(*rollout.MaxSurge)
	}
	if rollout.MaxUnavailable != nil {
		rolling.WithMaxUnavailable(*rollout.MaxUnavailable)
	}
	deadline := defaultProgressDeadlineSeconds
	if rollout.ProgressDeadlineSeconds != 0 {
		deadline = rollout.ProgressDeadlineSeconds
	}
	return appsv1ac.Deployment(fleet, proxy.Namespace).
		WithLabels(childLabels(fleet)).
		WithOwnerReferences(owner(proxy)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selectorLabels(fleet))).
			WithRevisionHistoryLimit(revisionHistoryLimit).
			WithProgressDeadlineSeconds(deadline).
			WithStrategy(appsv1ac.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(rolling)).
			WithTemplate(template))
}

// podTemplate is that of one configuration: an init container that has nginx test it, so that one which nginx refuses never
// replaces a pod that serves, and nginx. It keeps to the restricted Pod Security Standard.
func podTemplate(proxy *v1alpha1.MyProxy, configHash, defaultImage string) *corev1ac.PodTemplateSpecApplyConfiguration {
	fleet := fleetOf(proxy)
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(gracePeriodSeconds).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithRunAsNonRoot(true).WithRunAsUser(nginxUser).WithRunAsGroup(nginxUser).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithInitContainers(configTest(proxy, defaultImage)).
		WithContainers(server(proxy, defaultImage)).
		WithVolumes(volumes(configMapName(fleet, configHash))...)
	for _, secret := range proxy.Spec.ImagePullSecrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	return corev1ac.PodTemplateSpec().WithLabels(podLabels(fleet, configHash)).WithSpec(pod)
}

// configTest has nginx judge the configuration. What it prints becomes the termination message, and so the words of the
// condition ConfigValid.
func configTest(proxy *v1alpha1.MyProxy, defaultImage string) *corev1ac.ContainerApplyConfiguration {
	return container(containerConfigTest, proxy, defaultImage).
		WithCommand("nginx", "-t", "-e", "stderr", "-c", configDir+"/"+configFile).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError)
}

// server is nginx itself.
func server(proxy *v1alpha1.MyProxy, defaultImage string) *corev1ac.ContainerApplyConfiguration {
	return container(containerNginx, proxy, defaultImage).
		WithCommand("nginx", "-e", "stderr", "-c", configDir+"/"+configFile, "-g", "daemon off;").
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithPorts(
			corev1ac.ContainerPort().WithName(portHTTP).WithContainerPort(nginx.PortHTTP).WithProtocol(corev1.ProtocolTCP),
			corev1ac.ContainerPort().WithName(portHealth).WithContainerPort(nginx.PortHealth).WithProtocol(corev1.ProtocolTCP)).
		WithReadinessProbe(health().WithPeriodSeconds(2).WithFailureThreshold(2)).
		// Patient: it is there for an nginx that hangs, not for one that is busy.
		WithLivenessProbe(health().WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(6)).
		// The endpoints forget the pod, then nginx finishes what it serves; the hook ends with nginx, the grace period bounds
		// it. The kubelet's own signal is the image's, and SIGTERM would cut answers.
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithExec(corev1ac.ExecAction().WithCommand("sh", "-c", "sleep 5; kill -QUIT 1; sleep 3600"))))
}

// container is what the two containers of a pod share.
func container(name string, proxy *v1alpha1.MyProxy, defaultImage string) *corev1ac.ContainerApplyConfiguration {
	all := corev1ac.Container().
		WithName(name).
		WithImage(defaultImage).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("config").WithMountPath(configDir).WithReadOnly(true))
	for _, dir := range writable {
		all.WithVolumeMounts(corev1ac.VolumeMount().WithName(dir.name).WithMountPath(dir.path))
	}
	if proxy.Spec.Image != "" {
		all.WithImage(proxy.Spec.Image)
	}
	if proxy.Spec.ImagePullPolicy != "" {
		all.WithImagePullPolicy(proxy.Spec.ImagePullPolicy)
	}
	return all.WithResources(resources(proxy.Spec.Resources))
}

func resources(from corev1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	all := corev1ac.ResourceRequirements()
	if from.Requests != nil {
		all.WithRequests(from.Requests)
	}
	if from.Limits != nil {
		all.WithLimits(from.Limits)
	}
	for _, claim := range from.Claims {
		all.WithClaims(corev1ac.ResourceClaim().WithName(claim.Name).WithRequest(claim.Request))
	}
	return all
}

func volumes(configMap string) []*corev1ac.VolumeApplyConfiguration {
	all := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("config").WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName(configMap)),
	}
	for _, dir := range writable {
		all = append(all, corev1ac.Volume().WithName(dir.name).WithEmptyDir(corev1ac.EmptyDirVolumeSource()))
	}
	return all
}

func health() *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().
		WithPath(nginx.HealthPath).WithPort(intstr.FromString(portHealth)))
}
