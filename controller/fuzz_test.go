package controller

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Any pods, of any owners, in any order: the same bytes.
func FuzzStatusIsTheSameBytesInWhateverOrderThePodsCome(f *testing.F) {
	f.Add(uint64(1), uint8(3), "nginx: [emerg] unknown directive")
	f.Add(uint64(7), uint8(200), "back-off 5m0s restarting failed container=nginx")
	f.Add(uint64(42), uint8(0), "\xff\x00[emerg] ")
	f.Fuzz(func(t *testing.T, seed uint64, n uint8, said string) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := newWorld()
		for i := range 4 {
			owner := []types.UID{"deployment", "deployment", "another", ""}[random.IntN(4)]
			set := replicaSetMeta(types.UID(fmt.Sprintf("set-%d", i)), random.IntN(3), w.want.templateHash)
			set.OwnerReferences = controlledBy(owner)
			w.seen.replicaSets = append(w.seen.replicaSets, set)
		}
		for i := range int(n) {
			pod := anyPod(random, i, said)
			state := stateOf(pod)
			stripped, _ := stripPod(pod)
			if again := stateOf(stripped.(*corev1.Pod)); again != state {
				t.Fatalf("of the pod %+v, of what the cache has of it %+v", state, again)
			}
			w.seen.pods = append(w.seen.pods, state)
		}
		first := encode(wholeStatus{w.status()})
		random.Shuffle(len(w.seen.pods), func(i, j int) { w.seen.pods[i], w.seen.pods[j] = w.seen.pods[j], w.seen.pods[i] })
		slices.Reverse(w.seen.replicaSets)
		status := w.status()
		if again := encode(wholeStatus{status}); !bytes.Equal(first, again) {
			t.Errorf("got\n%s\nand\n%s", first, again)
		}
		if !slices.IsSorted(status.PodNames) {
			t.Errorf("pod_names are %q", status.PodNames)
		}
	})
}

func anyPod(random *rand.Rand, i int, said string) *corev1.Pod {
	one := func(all ...string) string { return all[random.IntN(len(all))] }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("shop-%d", i), Labels: map[string]string{labelConfig: one("a", "b"), labelTemplate: one("a", "b")},
		OwnerReferences: controlledBy(types.UID(one("set-0", "set-1", "set-2", "new", "old", ""))),
	}}
	if random.IntN(5) == 0 {
		pod.DeletionTimestamp = new(metav1.NewTime(epoch))
	}
	pod.Status.Phase = corev1.PodPhase(one("Pending", "Running", "Succeeded", "Failed", "Unknown", ""))
	pod.Status.Reason = one("", "", "Evicted")
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled} {
		if random.IntN(3) > 0 {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: kind, Status: corev1.ConditionStatus(one("True", "False", "Unknown")), Reason: one("", "Unschedulable"), Message: said,
				LastTransitionTime: metav1.NewTime(epoch.Add(time.Duration(random.IntN(3)) * time.Second)),
			})
		}
	}
	state := func() (state corev1.ContainerState) {
		switch random.IntN(4) {
		case 0:
			state.Waiting = &corev1.ContainerStateWaiting{Reason: one("", "ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff", "PodInitializing"), Message: said}
		case 1:
			state.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch.Add(time.Second))}
		case 2:
			state.Terminated = &corev1.ContainerStateTerminated{ExitCode: random.Int32N(3), Reason: one("", "Error", "OOMKilled", "StartError"), Message: said}
		}
		return state
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: one(containerConfigTest, "other"), State: state(), LastTerminationState: state()}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerNginx, State: state(), LastTerminationState: state(), Ready: random.IntN(2) == 0}}
	return pod
}
