package controller

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
)

// What a pod that serves costs in the cache, and what it would cost as it comes.
func BenchmarkBytesOfACachedPod(b *testing.B) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-768757475-5w7jh", Namespace: "default", UID: "0f5b3d3c-7d0f-4f3e-9d5a-2f4b7a6c1e11", ResourceVersion: "123456",
		Labels: podLabels("shop", "9d63249b8d6a"), OwnerReferences: controlledBy("5c1f3d3c-7d0f-4f3e-9d5a-2f4b7a6c1e22"),
	}}
	pod.Labels[labelTemplate] = "0123456789ab"
	template, err := json.Marshal(podTemplate(&v1alpha1.MyProxy{}, "9d63249b8d6a", testImage).Spec)
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(template, &pod.Spec); err != nil {
		b.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerNginx, Ready: true, Image: testImage}}
	data, err := json.Marshal(pod)
	if err != nil {
		b.Fatal(err)
	}
	for name, transform := range map[string]func(any) (any, error){"stripped": stripPod, "whole": func(o any) (any, error) { return o, nil }} {
		b.Run(name, func(b *testing.B) {
			const n = 5000
			for b.Loop() {
				all := make([]any, n)
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := range all {
					decoded := &corev1.Pod{}
					if err := json.Unmarshal(data, decoded); err != nil {
						b.Fatal(err)
					}
					all[i], _ = transform(decoded)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/pod")
				runtime.KeepAlive(all)
			}
		})
	}
}

func BenchmarkStatus(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("%d pods", n), func(b *testing.B) {
			w := newWorld(pods(n, "new", serves), wanting(int32(n)))
			b.ReportAllocs()
			for b.Loop() {
				newStatusWrite(w.proxy, w.status())
			}
		})
	}
}

func BenchmarkDesire(b *testing.B) {
	w := newWorld()
	b.ReportAllocs()
	for b.Loop() {
		desire(w.proxy, testImage)
	}
}
