package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What a kubelet 1.37 with containerd 2.4 and nginx 1.30 really said.
func TestTheStatesOfAContainerThatCanNotBeStartedAreOne(t *testing.T) {
	const why = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: ` +
		`unable to start container process: exec: "nginx": executable file not found in $PATH`
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: why}}
	states := map[string]corev1.ContainerStatus{
		"refused by the runtime": {State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: why}}},
		"ended":                  {State: ended},
		"backing off": {LastTerminationState: ended, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off 20s restarting failed container=config-test pod=pause-7f469b5757-6mrlf_shop(0d7f)",
		}}},
	}
	want := podState{name: "shop-1", reason: "RunContainerError", message: why}
	for name, container := range states {
		container.Name = containerConfigTest
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{container}}}
		pod.Name = "shop-1"
		if got := stateOf(pod); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestLastWordsAreWhatSaysWhyAContainerEnded(t *testing.T) {
	const notices = "2026/11/30 23:48:40 [notice] 1#1: start worker process 8\n2026/11/30 23:48:40 [notice] 1#1: start worker process 9\n"
	for name, tc := range map[string]struct {
		ended corev1.ContainerStateTerminated
		want  string
	}{
		"killed for its memory, with a log that says nothing": {
			corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", Message: notices}, "OOMKilled, exit code 137",
		},
		"an alert with a pid": {
			corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: notices + "2026/11/30 23:48:41 [alert] 1#1: worker process 8 exited on signal 9\n"},
			"worker process exited on signal 9",
		},
		"an access log": {
			corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: `10.0.0.1 - - [30/Nov/2026:23:48:40 +0000] "GET / HTTP/1.1" 404 9 "-" "curl"` + "\n"},
			"Error, exit code 2",
		},
		"nginx -t": {
			corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "2026/11/30 22:00:00 [emerg] 1#1: unknown directive \"foo\" in /etc/myproxy/nginx.conf:3\n" +
				"nginx: configuration file /etc/myproxy/nginx.conf test failed\n"},
			`unknown directive "foo" in /etc/myproxy/nginx.conf:3`,
		},
		"another program": {corev1.ContainerStateTerminated{ExitCode: 3, Message: "boom\n\n"}, "boom"},
	} {
		if got := stable(lastWords(&tc.ended)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
