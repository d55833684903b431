package controller

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type podOption func(*corev1.Pod)

func somePod(phase corev1.PodPhase, options ...podOption) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "shop-1", OwnerReferences: controlledBy("set"),
		Labels: map[string]string{labelFleet: "shop", labelConfig: "c", labelTemplate: "t"},
	}}
	pod.Status.Phase = phase
	for _, option := range options {
		option(pod)
	}
	return pod
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string, at time.Duration) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(epoch.Add(at)),
		})
	}
}

func running(name string, ready bool, at time.Duration) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch.Add(at))}},
		})
	}
}

func waiting(name, reason, message string) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		})
	}
}

func lastEnded(code int32, reason, message string) podOption {
	return func(pod *corev1.Pod) {
		last := &pod.Status.ContainerStatuses[len(pod.Status.ContainerStatuses)-1]
		last.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}
	}
}

func TestThePodsStateIsTheKubeletsWordsWithoutWhatChangesByItself(t *testing.T) {
	const unready = "containers with unready status: [nginx]"
	notReady := func(at time.Duration) podOption {
		return condition(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", unready, at)
	}
	base := podState{name: "shop-1", fleet: "shop", replicaSet: "set", config: "c", template: "t"}
	with := func(change func(*podState)) podState {
		state := base
		change(&state)
		return state
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want podState
	}{
		"just created": {
			somePod(corev1.PodPending), with(func(s *podState) { s.starting, s.reason = true, "Pending" }),
		},
		"serves, whatever it went through": {
			somePod(corev1.PodRunning, condition(corev1.PodReady, corev1.ConditionTrue, "", "", 0), running("nginx", true, 0), lastEnded(137, "OOMKilled", "")),
			with(func(s *podState) { s.ready, s.running = true, true }),
		},
		"finished": {
			somePod(corev1.PodFailed, func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = "Evicted", "low on memory" }),
			with(func(s *podState) { s.finished, s.reason, s.message = true, "Evicted", "low on memory" }),
		},
		"can't be scheduled": {
			somePod(corev1.PodPending, condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available", 0)),
			with(func(s *podState) { s.reason, s.message = "Unschedulable", "0/3 nodes are available" }),
		},
		"pulls its image": {
			somePod(corev1.PodPending, waiting("nginx", "ContainerCreating", "")),
			with(func(s *podState) { s.starting, s.reason = true, "ContainerCreating" }),
		},
		"can't pull its image, at once": {
			somePod(corev1.PodPending, waiting("nginx", "ErrImagePull", "no such host")),
			with(func(s *podState) { s.reason, s.message = "ImagePullBackOff", "no such host" }),
		},
		"can't pull its image, backing off": {
			somePod(corev1.PodPending, waiting("nginx", "ImagePullBackOff", `Back-off pulling image "x": ErrImagePull: no such host`)),
			with(func(s *podState) { s.reason, s.message = "ImagePullBackOff", "no such host" }),
		},
		"has a reference that is none": {
			somePod(corev1.PodPending, waiting("nginx", "InvalidImageName", "couldn't parse")),
			with(func(s *podState) { s.reason, s.message = "InvalidImageName", "couldn't parse" }),
		},
		"misses a Secret": {
			somePod(corev1.PodPending, waiting("nginx", "CreateContainerConfigError", `secret "x" not found`)),
			with(func(s *podState) { s.reason, s.message = "CreateContainerConfigError", `secret "x" not found` }),
		},
		"crashed, and backs off": {
			somePod(corev1.PodRunning, notReady(0), waiting("nginx", "CrashLoopBackOff", "back-off 40s restarting"), lastEnded(1, "Error", "nginx: [emerg] bind() failed")),
			with(func(s *podState) { s.running, s.reason, s.message = true, "CrashLoopBackOff", "bind() failed" }),
		},
		"crashed, and starts anew": {
			somePod(corev1.PodRunning, notReady(0), running("nginx", false, time.Minute), lastEnded(1, "Error", "nginx: [emerg] bind() failed")),
			with(func(s *podState) { s.running, s.reason, s.message = true, "CrashLoopBackOff", "bind() failed" }),
		},
		"a sidecar crashes": {
			somePod(corev1.PodRunning, notReady(0), running("nginx", true, 0), waiting("sidecar", "CrashLoopBackOff", "back-off 10s restarting"), lastEnded(2, "Error", "boom")),
			with(func(s *podState) { s.running, s.reason, s.message = true, "CrashLoopBackOff", "boom" }),
		},
		"backs off, and no word of why": {
			somePod(corev1.PodRunning, notReady(0), waiting("nginx", "CrashLoopBackOff", "back-off 2m40s restarting failed container=nginx")),
			with(func(s *podState) {
				s.running, s.reason, s.message = true, "CrashLoopBackOff", "back-off restarting failed container=nginx"
			}),
		},
		"runs, and was not ready yet": {
			somePod(corev1.PodRunning, notReady(0), running("sidecar", true, 0), running("nginx", false, time.Second)),
			with(func(s *podState) {
				s.running, s.starting, s.reason, s.message = true, true, "ContainersNotReady", unready
			}),
		},
		"its probe fails, after it served": {
			somePod(corev1.PodRunning, notReady(time.Hour), running("nginx", false, time.Second)),
			with(func(s *podState) { s.running, s.reason, s.message = true, "ContainersNotReady", unready }),
		},
		"its probe fails, long after a crash": {
			somePod(corev1.PodRunning, notReady(time.Hour), running("nginx", false, time.Second), lastEnded(137, "OOMKilled", "")),
			with(func(s *podState) { s.running, s.reason, s.message = true, "ContainersNotReady", unready }),
		},
		"its node is lost": {
			somePod(corev1.PodRunning, condition(corev1.PodReady, corev1.ConditionFalse, "NodeNotReady", "", time.Hour), running("nginx", true, 0)),
			with(func(s *podState) { s.running, s.reason = true, "NodeNotReady" }),
		},
	} {
		if got := stateOf(tc.pod); got != tc.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tc.want)
		}
	}
}

func TestAMessageKeepsItsMeaningOnly(t *testing.T) {
	for said, want := range map[string]string{
		`pods "shop-768757475-x2x4k" is forbidden: exceeded quota: q`: `pods "shop-768757475-…" is forbidden: exceeded quota: q`,
		"failed to create shim task " + strings.Repeat("0a", 32):      "failed to create shim task …",
		" spaces \n": "spaces",
		"\xff":       "…",
	} {
		if got := stable(said); got != want {
			t.Errorf("%q became %q, want %q", said, got, want)
		}
	}
	if got := stable(strings.Repeat("ä", 5000)); utf8.RuneCountInString(got) != 1024 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("a long one has %d characters", utf8.RuneCountInString(got))
	}
}

func TestALargeFleetsStatusIsWrittenTwiceASecondAtMost(t *testing.T) {
	large := newWorld(pods(largeFleet+1, "new", serves))
	write := newStatusWrite(large.proxy, large.status())
	last := statusRecord{intent: "another", at: epoch}
	if retryIn, spared := last.spares(write, large.proxy, epoch.Add(100*time.Millisecond)); !spared || retryIn != 400*time.Millisecond {
		t.Errorf("after 100 ms: spared is %t, again in %s; want it in 400 ms", spared, retryIn)
	}
	if _, spared := last.spares(write, large.proxy, epoch.Add(largeFleetPause)); spared {
		t.Error("after half a second it is not written")
	}
	small := newWorld(pods(largeFleet, "new", serves))
	if _, spared := last.spares(newStatusWrite(small.proxy, small.status()), small.proxy, epoch); spared {
		t.Error("a fleet of a thousand waits")
	}
}
