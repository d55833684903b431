package v1alpha1

// The condition types of a MyProxy. Each is there all the time, but for Stalled; each says in observedGeneration which spec
// it judges. All have positive polarity but Stalled.
const (
	// ConditionReady is True while every wanted pod serves the spec as it is now. Where it is not, its reason is the
	// first that holds of: Terminating; that of Accepted; ConfigRefused; Paused; ReplicaFailure; PodsUnavailable;
	// RollingOut.
	ConditionReady = "Ready"
	// ConditionAccepted is True when the API server has taken every object that the spec asks for, False when one can't be
	// had, and Unknown while the API server does not answer.
	ConditionAccepted = "Accepted"
	// ConditionConfigValid is nginx's verdict on the configuration of status.configHash: True from the first pod that
	// serves it, False when `nginx -t` refuses it. It keeps until the hash changes or a pod says otherwise.
	ConditionConfigValid = "ConfigValid"
	// ConditionAvailable is True while at least one pod serves, of whatever generation.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while pods are being replaced, added or removed.
	ConditionProgressing = "Progressing"
	// ConditionStalled is True while nothing will get better without somebody's help: Accepted or ConfigValid is False, or
	// the rollout's deadline has passed. Else it is not there. Its reason and message are those of Ready. kstatus reads it as
	// Failed.
	ConditionStalled = "Stalled"
)

// The reasons of the conditions.
const (
	// ReasonAccepted (Accepted, True): the API server has taken every object of the fleet.
	ReasonAccepted = "Accepted"
	// ReasonNameConflict (Accepted, Ready: False): an object of the fleet's name belongs to somebody else, or another
	// MyProxy has the name. It is left as it is, and tried again every 30 seconds.
	ReasonNameConflict = "NameConflict"
	// ReasonRefused (Accepted, Ready, ConfigValid: False): the API server refused an object, for example for its
	// resources, or nginx refused the configuration; the message has the field or the line.
	ReasonRefused = "Refused"
	// ReasonApplyFailed (Accepted: Unknown; Ready: False): the API server has not answered yet; it is tried again.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonServed (ConfigValid: True): a pod serves this configuration.
	ReasonServed = "Served"
	// ReasonPending (ConfigValid: Unknown): no pod has tried this configuration yet.
	ReasonPending = "Pending"
	// ReasonConfigRefused (Ready: False): nginx refuses the configuration; pods of the one before serve on.
	ReasonConfigRefused = "ConfigRefused"

	// ReasonServing (Ready, Available: True): all wanted pods serve, or at least one.
	ReasonServing = "Serving"
	// ReasonNoPods (Available: False): there is no pod.
	ReasonNoPods = "NoPods"
	// ReasonPodsUnavailable (Available, Ready: False): pods are there that do not serve; see status.unavailablePods.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonScaledToZero (Available: False; Ready: True): no pod is wanted and none is there.
	ReasonScaledToZero = "ScaledToZero"

	// ReasonRollingOut (Progressing: True; Ready: False): pods are being replaced, added or removed; nothing to do but wait.
	ReasonRollingOut = "RollingOut"
	// ReasonComplete (Progressing: False): the pods are as wanted.
	ReasonComplete = "Complete"
	// ReasonReplicaFailure (Progressing: True; Ready: False): pods are refused, by a quota or an admission
	// controller; the message is the ReplicaSet controller's.
	ReasonReplicaFailure = "ReplicaFailure"
	// ReasonStalled (Progressing: False): spec.rollout.progressDeadlineSeconds passed without a new pod
	// that serves.
	ReasonStalled = "Stalled"
	// ReasonPaused (Progressing: False; Ready: False where the fleet is not as the spec says): spec.paused is true.
	ReasonPaused = "Paused"
	// ReasonBlocked (Progressing: False): Accepted is False.
	ReasonBlocked = "Blocked"
	// ReasonTerminating (Progressing, Ready: False): the MyProxy is being deleted.
	ReasonTerminating = "Terminating"
)
