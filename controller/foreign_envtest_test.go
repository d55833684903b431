package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
)

func TestWhatOthersSetOnAChildSurvives(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 0")
	deployment := o.deployment("shop")
	o.settle()
	service := &corev1.Service{}
	o.get("shop", service)
	o.patch(deployment, "others", `{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}`)
	o.patch(service, "others", `{"metadata":{"labels":{"team":"a"}},"spec":{"type":"NodePort"}}`)
	sidecar := `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}},"spec":{"containers":[{"name":"sidecar","image":"sidecar"}]}}}}`
	if err := o.client.Patch(t.Context(), deployment, client.RawPatch(types.StrategicMergePatchType, []byte(sidecar)), client.FieldOwner("others")); err != nil {
		t.Fatal(err)
	}
	o.settle()
	o.takeWrites()
	for i := range 20 {
		o.apply("shop", fmt.Sprintf("{replicas: 0, rollout: {progressDeadlineSeconds: %d}}", 100+i)) // each is an apply of the Deployment
		o.settle()
	}
	o.get("shop", deployment)
	o.get("shop", service)
	names := []string{}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		names = append(names, container.Name)
	}
	if !slices.Contains(names, "sidecar") || deployment.Labels["team"] != "a" || deployment.Annotations["note"] != "b" ||
		deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "now" || service.Labels["team"] != "a" ||
		service.Spec.Ports[0].NodePort == 0 {
		t.Errorf("something is lost of the Deployment %+v, the Service %+v", deployment, service)
	}
	if got := *deployment.Spec.ProgressDeadlineSeconds; got != 119 {
		t.Errorf("progressDeadlineSeconds is %d: the applies were not sent", got)
	}
}

func TestAnOwnedFieldThatDriftsIsPutBack(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 2")
	o.settle()
	for what, drift := range map[string]struct {
		object client.Object
		patch  string
		mended func() bool
	}{
		"replicas": {&appsv1.Deployment{}, `{"spec":{"replicas":7}}`, func() bool { return *o.deployment("shop").Spec.Replicas == 2 }},
		"a port":   {&corev1.Service{}, `{"spec":{"ports":[{"name":"http","port":80,"targetPort":1}]}}`, func() bool { return o.service().Spec.Ports[0].TargetPort.StrVal == portHTTP }},
		"a label":  {&corev1.Service{}, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"me"}}}`, func() bool { return o.service().Labels[labelManagedBy] == childManager }},
		"the fleet label": {&appsv1.Deployment{}, `{"metadata":{"labels":{"gateway.myproxy.dev/name":null}}}`, func() bool {
			return o.deployment("shop").Labels[labelFleet] == "shop"
		}},
		"the owner": {&corev1.Service{}, `{"metadata":{"ownerReferences":null}}`, func() bool { return metav1.GetControllerOf(o.service()) != nil }},
	} {
		o.get("shop", drift.object)
		o.patch(drift.object, "drifter", drift.patch)
		o.eventually(what+" is put back", func() error {
			if !drift.mended() {
				return fmt.Errorf("it is %+v", drift.object)
			}
			return nil
		})
		o.settle()
	}
	o.takeWrites()
	o.patch(o.proxy("shop"), "test", `{"metadata":{"labels":{"a":"b"}}}`)
	o.wantWrites("at rest")
}

func (c *cluster) service() *corev1.Service {
	c.t.Helper()
	service := &corev1.Service{}
	c.get("shop", service)
	return service
}

func TestADeletedChildComesBackByOneWrite(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 0")
	o.settle()
	config := "shop-" + o.proxy("shop").Status.ConfigHash
	for name, object := range map[string]client.Object{"shop": &corev1.Service{}, config: &corev1.ConfigMap{}} {
		o.get(name, object)
		o.takeWrites()
		uid := object.GetUID()
		if err := o.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		o.eventually("it comes back", func() error {
			if err := o.client.Get(t.Context(), client.ObjectKey{Namespace: o.namespace, Name: name}, object); err != nil || object.GetUID() == uid {
				return fmt.Errorf("it is %v (%w)", object, err)
			}
			return nil
		})
		o.settle()
		if got := o.takeWrites(); len(got) > 2 { // and the status, where the Service has a new address
			t.Errorf("%s came back by %q", name, got)
		}
	}
}

func TestAFieldThatIsRemovedFromTheSpecDisappearsFromTheChild(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "{replicas: 0, image: nginx:other, imagePullPolicy: Always, imagePullSecrets: [{name: pull}], resources: {limits: {memory: 64Mi}}, rollout: {maxSurge: 3}}")
	o.settle()
	o.apply("shop", "replicas: 0")
	o.settle()
	spec := o.deployment("shop").Spec
	pod := spec.Template.Spec
	if pod.Containers[0].Image != testImage || pod.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent || len(pod.ImagePullSecrets) != 0 ||
		len(pod.Containers[0].Resources.Limits) != 0 || spec.Strategy.RollingUpdate.MaxSurge.StrVal != "25%" {
		t.Errorf("something is left in %+v", spec)
	}
}

func TestAForeignObjectOfTheNameIsNotTouched(t *testing.T) {
	labels := childLabels("shop")
	for what, foreign := range map[string]client.Object{
		"a Service without our label": &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}},
		"a Service with our labels": &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}},
		},
		"a Deployment without our label": foreignDeployment(nil),
		"a Deployment with our labels":   foreignDeployment(labels),
		"a ConfigMap without our label":  &corev1.ConfigMap{},
		"a ConfigMap with our labels":    &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		"a ConfigMap of another owner": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(true)},
		}}},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t)
			foreign.SetNamespace(c.namespace)
			foreign.SetName("shop")
			if _, is := foreign.(*corev1.ConfigMap); is {
				foreign.SetName("shop-" + desire(&v1alpha1.MyProxy{}, testImage).configHash)
			}
			c.create(foreign, nil)
			before := c.bytes(foreign)
			clock := testclock.NewFakeClock(time.Now())
			o := c.startOperatorWith(newWire(), clock)
			o.apply("shop", "replicas: 0")
			told := o.wantCondition("shop", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			if want := fmt.Sprintf("%s %s is there and belongs to somebody else", kindOf(foreign), foreign.GetName()); told.Message != want {
				t.Errorf("it says %q, want %q", told.Message, want)
			}
			o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
			o.settle()
			o.takeWrites()
			for i := range 5 {
				o.apply("shop", fmt.Sprintf("{replicas: 0, rollout: {progressDeadlineSeconds: %d}}", 100+i))
				o.settle()
			}
			for _, write := range o.takeWrites() {
				if write != statusWriteOfShop {
					t.Errorf("it wrote %s", write)
				}
			}
			if after := c.bytes(foreign); after != before {
				t.Errorf("the foreign object was %s and is %s", before, after)
			}
			if err := c.client.Delete(t.Context(), foreign); err != nil {
				t.Fatal(err)
			}
			clock.Step(conflictRetry)
			o.patch(o.proxy("shop"), "test", `{"metadata":{"labels":{"look":"again"}}}`)
			o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
		})
	}
}

func foreignDeployment(labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}

func kindOf(object client.Object) string {
	kinds, _, err := scheme.ObjectKinds(object)
	if err != nil {
		panic(err)
	}
	return kinds[0].Kind
}

// bytes is all of an object as the API server has it.
func (c *cluster) bytes(object client.Object) string {
	c.t.Helper()
	c.get(object.GetName(), object)
	data, err := json.Marshal(object)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

func TestAConflictHealsByItselfWithinHalfAMinute(t *testing.T) {
	c := newCluster(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "shop"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	c.create(foreign, nil)
	o := c.startOperator()
	o.apply("shop", "replicas: 0")
	o.wantCondition("shop", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	if err := c.client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	o.within(conflictRetry+2*time.Second, "it heals", func() error {
		for _, condition := range o.proxy("shop").Status.Conditions {
			if condition.Type == v1alpha1.ConditionReady && condition.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the status is %s", summary(o.proxy("shop").Status))
	})
}

func TestForgedPodsAreNotInTheStatusAndCostNoWrite(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.apply("other", "replicas: 1")
	shop := o.deployment("shop")
	set := o.replicaSet(shop, 1)
	others := o.replicaSet(o.deployment("other"), 1)
	o.readyPod(set, "shop-1")
	o.wantPods("shop", 1, "shop-1")
	o.settle()
	o.takeWrites()

	labelOnly := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "forged-label", Labels: set.Labels}, Spec: set.Spec.Template.Spec}
	o.create(labelOnly, nil)
	foreignSet := set.DeepCopy()
	foreignSet.ObjectMeta = metav1.ObjectMeta{Namespace: o.namespace, Name: "foreign", Labels: set.Labels}
	o.create(foreignSet, nil)
	o.readyPod(foreignSet, "forged-foreign-set")
	wrongUID := set.DeepCopy()
	wrongUID.ObjectMeta = metav1.ObjectMeta{Namespace: o.namespace, Name: "wrong-uid", Labels: set.Labels}
	stranger := shop.DeepCopy()
	stranger.UID = "00000000-0000-0000-0000-000000000000"
	o.create(wrongUID, stranger)
	o.readyPod(wrongUID, "forged-wrong-uid")
	othersSet := others.DeepCopy()
	othersSet.Spec.Template.Labels = set.Labels // of another MyProxy's ReplicaSet, with our label
	o.readyPod(othersSet, "forged-others-set")
	o.settle()
	if got := o.proxy("shop").Status.PodNames; !slices.Equal(got, []string{"shop-1"}) {
		t.Errorf("pod_names are %q, want only shop-1", got)
	}
	o.wantWrites("forged pods")
}
