// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Fault is what goes wrong with a request. Make one with the functions that return one, and say with the fields which request.
type Fault struct {
	// Verb is the kind of request, Nth the first of them that meets the fault, counted from [Script.Faults], and Times how many in a
	// row do. Zero means one; Times -1 means all from then on.
	Verb  Verb
	Nth   int
	Times int
	// Object, where set, limits the fault to requests for this object, named as in [Call].
	Object string
	// Delay is how long the request takes in addition, before anything else happens.
	Delay time.Duration

	before    func(Call) error // the answer, instead of carrying it out
	after     error            // the answer, after carrying it out
	silence   time.Duration    // before that answer
	dropWatch bool
	crash     bool
}

// On returns the fault for the n-th request of a kind: On(Evict, 2, …) spoils the second eviction.
func On(verb Verb, nth int, f Fault) Fault {
	f.Verb, f.Nth = verb, nth
	return f
}

// Always returns the fault for all requests of a kind.
func Always(verb Verb, f Fault) Fault {
	f.Verb, f.Nth, f.Times = verb, 1, -1
	return f
}

func instead(answer func(Call) error) Fault { return Fault{before: answer} }

// Slow only delays the request.
func Slow(d time.Duration) Fault { return Fault{Delay: d} }

// BudgetExhausted is the 429 of a budget that allows none.
func BudgetExhausted() Fault {
	return instead(func(Call) error { return exhausted("The disruption budget b needs 2 healthy pods and has 2 currently") })
}

// BudgetStale is the 429 of a budget whose status is older than its spec, with Retry-After.
func BudgetStale() Fault { return instead(func(Call) error { return stale("b") }) }

// BudgetContended is the 409 of a budget that others kept writing.
func BudgetContended() Fault {
	return instead(func(Call) error { return optimisticLock(budgetResource(), "b") })
}

// BudgetTimeout is the 504 of the same.
func BudgetTimeout() Fault {
	return instead(func(Call) error {
		return apierrors.NewTimeoutError(`couldn't update PodDisruptionBudget "b" due to conflicts`, 10)
	})
}

// Conflict is the 409 of an object that has changed: for PatchNode another resourceVersion, for pods another UID.
func Conflict() Fault {
	return instead(func(call Call) error {
		if call.Verb == PatchNode {
			return optimisticLock(nodeResource(), call.Object)
		}
		return otherUID(nameOf(call), call.UID, "another")
	})
}

// Gone is the 404 of the object.
func Gone() Fault {
	return instead(func(call Call) error {
		if call.Verb == PatchNode {
			return apierrors.NewNotFound(nodeResource(), call.Object)
		}
		return apierrors.NewNotFound(podResource(), nameOf(call))
	})
}

// Overloaded is the 429 of a server that has too much to do: no cause, and Retry-After.
func Overloaded(retryAfter time.Duration) Fault {
	return code(http.StatusTooManyRequests, "Too many requests, please try again later.", retryAfter)
}

// Unavailable is a 503.
func Unavailable() Fault { return code(http.StatusServiceUnavailable, "service unavailable", 0) }

// InternalError is a 500 that says nothing of use.
func InternalError() Fault {
	return instead(func(Call) error { return apierrors.NewInternalError(errors.New("etcdserver: leader changed")) })
}

// GatewayTimeout is a 504 of something between the client and the server.
func GatewayTimeout() Fault { return code(http.StatusGatewayTimeout, "gateway timeout", 0) }

// code is an answer that is no Status, as proxies and the server's own filters give it.
func code(status int, body string, retryAfter time.Duration) Fault {
	return instead(func(call Call) error {
		return apierrors.NewGenericServerResponse(status, http.MethodPost, podResource(), nameOf(call), body, int(retryAfter.Seconds()), true)
	})
}

// TimeoutBefore is a request that never reaches the server, TimeoutAfter one of which only the answer is lost. Both take the given
// time.
func TimeoutBefore(takes time.Duration) Fault {
	return Fault{Delay: takes, before: func(Call) error { return timeout() }}
}

// TimeoutAfter is a request that is carried out and of which the answer is lost.
func TimeoutAfter(takes time.Duration) Fault { return Fault{silence: takes, after: timeout()} }

func timeout() error { return fmt.Errorf("draintest: no answer: %w", context.DeadlineExceeded) }

// WatchDropped lets the request pass and then freezes the cache, until [Cluster.RestoreWatch].
func WatchDropped() Fault { return Fault{dropWatch: true} }

// CrashBefore kills the client's process before the request, CrashAfter after it is carried out: see [ErrCrash].
func CrashBefore() Fault {
	return Fault{crash: true, before: func(Call) error { return ErrCrash }}
}

// CrashAfter kills the client's process after the request is carried out.
func CrashAfter() Fault { return Fault{crash: true, after: ErrCrash} }

// WebhookDenied is the refusal of an admission webhook: 403 of one that gives a code, 400 of one that does not.
func WebhookDenied(status int32) Fault {
	return instead(func(Call) error {
		s := metav1.Status{
			Status: metav1.StatusFailure, Code: status, Message: `admission webhook "guard.example.com" denied the request: not today`,
		}
		if status == http.StatusForbidden {
			s.Reason = metav1.StatusReasonForbidden
		}
		return &apierrors.StatusError{ErrStatus: s}
	})
}

// Forbidden is the refusal of RBAC.
func Forbidden() Fault {
	return instead(func(call Call) error {
		if call.Verb == PatchNode {
			return apierrors.NewForbidden(nodeResource(), call.Object,
				fmt.Errorf(`User "drainer" cannot patch resource "nodes" in API group "" at the cluster scope`)) //nolint:staticcheck // the server's text
		}
		return apierrors.NewForbidden(podResource(), nameOf(call),
			fmt.Errorf(`User "drainer" cannot create resource "pods/eviction" in API group "" in the namespace`)) //nolint:staticcheck // the server's text
	})
}

// NamespaceGoing is the refusal in a namespace that is being deleted.
func NamespaceGoing() Fault {
	return instead(func(call Call) error { return namespaceTerminating(nameOf(call), corev1.NamespaceDefault) })
}

// nameOf is the name without the namespace.
func nameOf(call Call) string {
	_, name, found := strings.Cut(call.Object, "/")
	if !found {
		return call.Object
	}
	return name
}
