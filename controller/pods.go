package controller

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podState is all that the status reads of a pod. Two states that are equal need no status write, so no event between
// them wakes the fleet.
type podState struct {
	name             string
	fleet            string
	replicaSet       types.UID // its controller
	config, template string    // the labels
	finished         bool      // it will never serve again
	terminating      bool
	ready            bool
	running          bool   // its containers were started
	starting         bool   // it does not serve, but nothing went wrong so far
	reason, message  string // why it does not serve; empty if it does
	refusal          string // what nginx said of the configuration, if it refused it
}

const (
	reasonImagePullBackOff = "ImagePullBackOff"
	reasonCrashLoopBackOff = "CrashLoopBackOff"
	reasonRunContainer     = "RunContainerError"
)

// stateOf reads a pod. The states of one fault that alternate are one state: ErrImagePull is ImagePullBackOff; a
// container that failed is in CrashLoopBackOff until it was ready again, be it terminated, waiting, or started anew; and one that
// could not even be started (StartError) is in RunContainerError throughout.
func stateOf(pod *corev1.Pod) podState {
	state := podState{
		name:        pod.Name,
		fleet:       pod.Labels[labelFleet],
		config:      pod.Labels[labelConfig],
		template:    pod.Labels[labelTemplate],
		finished:    pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		terminating: pod.DeletionTimestamp != nil,
		running:     pod.Status.Phase == corev1.PodRunning,
	}
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		state.replicaSet = controller.UID
	}
	ready := podCondition(pod, corev1.PodReady)
	if ready.Status == corev1.ConditionTrue {
		state.ready = true
		return state
	}
	state.refusal = refusal(pod)
	state.reason, state.message, state.starting = trouble(pod, ready)
	state.message = stable(state.message)
	return state
}

// trouble is why a pod is not ready, the most specific that is known; starting, where nothing went wrong so far.
func trouble(pod *corev1.Pod, ready corev1.PodCondition) (reason, message string, starting bool) {
	for _, container := range pod.Status.InitContainerStatuses {
		if reason, message = containerTrouble(container, ready, true); reason != "" {
			return reason, message, false
		}
	}
	for _, container := range pod.Status.ContainerStatuses {
		if reason, message = containerTrouble(container, ready, false); reason != "" {
			return reason, message, false
		}
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled.Status == corev1.ConditionFalse {
		return cmp.Or(scheduled.Reason, corev1.PodReasonUnschedulable), scheduled.Message, false
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason, pod.Status.Message, false
	}
	starting = pod.Status.Phase != corev1.PodRunning
	for _, container := range pod.Status.ContainerStatuses {
		if waiting := container.State.Waiting; waiting != nil {
			return cmp.Or(waiting.Reason, "ContainerCreating"), waiting.Message, true
		}
		starting = starting || !container.Ready && !readySinceStart(container, ready)
	}
	return cmp.Or(ready.Reason, "Pending"), ready.Message, starting
}

// containerTrouble is the fault of one container; no reason, if it has none.
func containerTrouble(container corev1.ContainerStatus, ready corev1.PodCondition, init bool) (reason, message string) {
	if waiting := container.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", reasonImagePullBackOff:
			// The one is `WHY`, the other `Back-off pulling image "IMAGE": ErrImagePull: WHY`.
			if _, why, found := strings.Cut(waiting.Message, "ErrImagePull: "); found {
				return reasonImagePullBackOff, why
			}
			return reasonImagePullBackOff, waiting.Message
		case "", "ContainerCreating", "PodInitializing", reasonCrashLoopBackOff:
		default:
			return waiting.Reason, waiting.Message
		}
	}
	if failed := termination(container, ready, init); failed != nil {
		if failed.Reason == "StartError" {
			return reasonRunContainer, failed.Message
		}
		return reasonCrashLoopBackOff, lastWords(failed)
	}
	if waiting := container.State.Waiting; waiting != nil && waiting.Reason == reasonCrashLoopBackOff {
		return reasonCrashLoopBackOff, waiting.Message
	}
	return "", ""
}

// termination is that of a container that ended where it should not have, and was not ready since; else nil.
func termination(container corev1.ContainerStatus, ready corev1.PodCondition, init bool) *corev1.ContainerStateTerminated {
	ended := container.State.Terminated
	if ended == nil {
		ended = container.LastTerminationState.Terminated
		if container.Ready || container.State.Running != nil && !init && readySinceStart(container, ready) {
			return nil
		}
	}
	if ended != nil && init && ended.ExitCode == 0 {
		return nil
	}
	return ended
}

// readySinceStart tells whether the pod stopped being ready after the container had started, so was ready in between: its
// probe fails. A pod that only starts is not ready since before that. Both times are in whole seconds.
func readySinceStart(container corev1.ContainerStatus, ready corev1.PodCondition) bool {
	running := container.State.Running
	return running != nil && (running.StartedAt.IsZero() || ready.LastTransitionTime.After(running.StartedAt.Time))
}

// refusal is what nginx said of the pod's configuration where it refused it; else nothing. `nginx -t` exits with 1 then; a
// container that could not be started, or was killed, says nothing of the configuration.
func refusal(pod *corev1.Pod) string {
	for _, container := range pod.Status.InitContainerStatuses {
		if container.Name != containerConfigTest {
			continue
		}
		failed := termination(container, corev1.PodCondition{}, true)
		if failed != nil && (failed.ExitCode == 1 || emerg.MatchString(failed.Message)) {
			return stable(lastWords(failed))
		}
	}
	return ""
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return corev1.PodCondition{}
}

var (
	// emerg is nginx's line that says why it ends, as it writes it to its log (with date, level and pid) or to the terminal.
	emerg = regexp.MustCompile(`(?m)^.*?\[emerg\] (?:\d+#\d+: )?(.*)$`)
	// stamp is what nginx begins the other lines of its log with.
	stamp = regexp.MustCompile(`^(?:nginx: )?(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d )?(?:\[\w+\] )?(?:\d+#\d+: )?`)
	// chatter are lines that never say why it ended: what is below an error in nginx's log, and those of an access log.
	chatter = regexp.MustCompile(`\[(?:debug|info|notice|warn)\] \d+#\d+: | \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [-+]\d{4}\] `)
)

// lastWords is what a container said last: nginx's last [emerg] line, else its last line that says something, else how it ended.
func lastWords(ended *corev1.ContainerStateTerminated) string {
	said := ""
	if lines := emerg.FindAllStringSubmatch(ended.Message, -1); len(lines) > 0 {
		said = lines[len(lines)-1][1]
	} else {
		for line := range strings.Lines(ended.Message) {
			if line = strings.TrimSpace(line); line != "" && !chatter.MatchString(line) {
				said = stamp.ReplaceAllString(line, "")
			}
		}
	}
	switch {
	case said == "":
		return fmt.Sprintf("%s, exit code %d", cmp.Or(ended.Reason, "Error"), ended.ExitCode)
	case ended.Reason == "" || ended.Reason == "Error" || ended.Reason == "Completed":
		return said
	default: // OOMKilled and the like say more than the container could
		return ended.Reason + ": " + said
	}
}

var (
	containerID = regexp.MustCompile(`[0-9a-f]{64}`)
	backOff     = regexp.MustCompile(`(?i)\b(back-off) [0-9][0-9hms.]* `)
	processID   = regexp.MustCompile(`\bprocess \d+`)
	podName     = regexp.MustCompile(`pods "([^"]*)-[a-z0-9]{5}"`)
)

// stable takes out of a message what changes while its meaning does not (a container's or process' id, the delay of a back-off, the
// random end of a pod's name), or each repetition would be a status write; and bounds it, by characters.
func stable(message string) string {
	const most = 1024
	message = containerID.ReplaceAllString(strings.TrimSpace(message), "…")
	message = backOff.ReplaceAllString(message, "$1 ")
	message = processID.ReplaceAllString(message, "process")
	message = podName.ReplaceAllString(message, `pods "$1-…"`)
	if runes := []rune(message); len(runes) > most {
		message = string(runes[:most-1]) + "…"
	}
	return strings.ToValidUTF8(message, "…")
}
