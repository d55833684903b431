package controller

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"myproxy.dev/operator/api/v1alpha1"
)

// failure is a child that could not be had.
type failure struct {
	child   childID
	reason  string // of the condition Accepted; none where it is not to be told
	message string // stable: the same failure gives the same text
	err     error  // what to retry with exponential backoff; nil where retryIn says when to try again
	retryIn time.Duration
}

const (
	// conflictRetry is after how long it is looked again whether somebody else's object is still there: nothing announces
	// that it went.
	conflictRetry = 30 * time.Second
	// raceRetry is after how long an apply is tried again that lost a race; the event of what won it comes sooner as a rule.
	raceRetry = time.Second
	// Between refusalRetry and five times it, what was refused is tried again: what it waits for may send no event.
	refusalRetry  = time.Minute
	refusalJitter = 4
)

// nameConflict is the failure to have a child that is somebody else's.
func nameConflict(id childID, message string) *failure {
	return &failure{child: id, reason: v1alpha1.ReasonNameConflict, message: message, retryIn: conflictRetry}
}

// failureOf judges what the API server answered to the apply of a child: nil, if there is nothing to judge.
func failureOf(id childID, err error) *failure {
	f := &failure{child: id}
	switch {
	case err == nil:
		return nil
	case lostRace(err):
		f.retryIn = raceRetry
	case refusedForGood(err):
		f.reason, f.message, f.retryIn = v1alpha1.ReasonRefused, fmt.Sprintf("%s: %s", id, sentence(err)), wait.Jitter(refusalRetry, refusalJitter)
	case refused(err):
		f.reason, f.message, f.err = v1alpha1.ReasonRefused, fmt.Sprintf("%s: %s", id, sentence(err)), err
	default: // its text may hold an address or a time
		f.reason, f.err = v1alpha1.ReasonApplyFailed, err
		f.message = fmt.Sprintf("%s: the API server did not take it yet", id)
		if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
			f.message += fmt.Sprintf(" (%s)", reason)
		}
	}
	if f.err != nil {
		f.err = fmt.Errorf("apply %s: %w", id, f.err)
	}
	return f
}

// lostRace tells whether the object that the apply was meant for is another by now, or gone: 409, and 422 on the uid.
func lostRace(err error) bool {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return true
	}
	_, onUID := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	if status := apierrors.APIStatus(nil); onUID && errors.As(err, &status) {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field == "metadata.uid" {
				return true
			}
		}
	}
	return false
}

// refusedForGood tells whether the same request can't succeed before something else changes: a validation's 422, and the
// two that server-side apply answers with 500.
func refusedForGood(err error) bool {
	return apierrors.IsInvalid(err) ||
		strings.Contains(err.Error(), "field not declared in schema") ||
		strings.Contains(err.Error(), "duplicate entries")
}

// refused tells whether the API server decided against the request (a quota, an admission controller, a missing right), which
// may change at any time.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != 401 && code != 408 && code != 429
}

// sentence is the API server's message, as stable as the messages of a pod.
func sentence(err error) string {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return stable(status.Status().Message)
	}
	return stable(err.Error())
}
