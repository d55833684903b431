package controller

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"myproxy.dev/operator/api/v1alpha1"
)

func TestTheChildrenOfAMyProxyAreThoseOfTheGoldenFiles(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "shop", Namespace: "ns", UID: "proxy-uid"}
	for name, spec := range map[string]v1alpha1.MyProxySpec{
		"default": {},
		"everything": {
			Name: "fleet", Replicas: new(int32(5)), Image: "nginx:other", ImagePullPolicy: corev1.PullAlways,
			ImagePullSecrets: []v1alpha1.ImagePullSecret{{Name: "pull"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2500m")},
			},
			Rollout: v1alpha1.Rollout{MaxSurge: new(intstr.FromInt32(2)), MaxUnavailable: new(intstr.FromString("10%")), ProgressDeadlineSeconds: 60},
		},
	} {
		proxy := &v1alpha1.MyProxy{ObjectMeta: meta, Spec: spec}
		var documents []string
		for _, child := range desire(proxy, testImage).children {
			document, err := yaml.Marshal(child.config)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, string(document))
		}
		golden(t, name+".yaml", strings.Join(documents, "---\n"))
	}
}

func TestWhatIsDesiredIsTheSameBytesEachTime(t *testing.T) {
	proxy := &v1alpha1.MyProxy{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "ns"}}
	first := encode(desire(proxy, testImage).children[1].config)
	for range 100 {
		if again := encode(desire(proxy, testImage).children[1].config); !bytes.Equal(first, again) {
			t.Fatalf("got\n%s\nand\n%s", first, again)
		}
	}
}

func TestTheTemplatesLabelNamesTheTemplateAsItIsAppliedWithoutIt(t *testing.T) {
	of := func(image string) string {
		return desire(&v1alpha1.MyProxy{Spec: v1alpha1.MyProxySpec{Image: image}}, testImage).templateHash
	}
	if of("") != of(testImage) || of("") == of("nginx:other") {
		t.Errorf("default %s, the same image written out %s, another %s", of(""), of(testImage), of("nginx:other"))
	}
}
