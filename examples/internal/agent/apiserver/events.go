// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/examples/internal/agent/history"
)

const (
	// EventNamespace holds the events about Nodes, which have no namespace.
	EventNamespace = metav1.NamespaceDefault
	// EventController is the reporting controller of each event.
	EventController = "belay.dev/configsync"
	// EventAction is what the controller does.
	EventAction = "SyncConfig"
	// EventReasonPrefix comes before the kind of the entry: an adoption has the reason ConfigAdopted.
	EventReasonPrefix = "Config"

	// The bounds of the API server, in bytes.
	maxNote     = 1024
	maxInstance = 128
)

var (
	events     = schema.GroupVersionResource{Group: eventsv1.GroupName, Version: "v1", Resource: "events"}
	coreEvents = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// EventSender makes the entries of a journal events about the node, as `kubectl describe node` shows them: what is [history.Kind.Urgent] a Warning.
// The name of an event is that of the entry, so that an entry that is sent again, by whichever process, is no second event: it may be
// the function of a history.Teller.
//
// Starts, ends of trouble and lists that were cleared by a person are no events. Notes have names, UIDs and reasons, and no value of a config.
//
// Where the account may not create events of the group events.k8s.io, the sender creates the same event in the core
// group: before Kubernetes 1.35 the API server lets a kubelet's identity create no others.
//
// It may be used concurrently.
type EventSender struct{ caller }

// callTimeout bounds each call, retries included.
const callTimeout = 10 * time.Second

// NewEventSender returns the sender of the named node. Its errors are mistakes of the caller.
func NewEventSender(client dynamic.Interface, node string) (*EventSender, error) {
	c, err := newCaller(client, node, callTimeout)
	if err != nil {
		return nil, fmt.Errorf("making an event sender: %w", err)
	}
	return &EventSender{c}, nil
}

// Send makes sure that there is, or was, an event of e. One that the API server finds invalid is logged and left: it would stand in the way of
// those behind it for ever. Errors are to be tried again; they wrap [configsync.ErrForbidden], [configsync.ErrMissing] where the namespace or
// the kind is not there, and [configsync.ErrUnreachable].
func (s *EventSender) Send(ctx context.Context, e history.Entry) error {
	if !told(e.Kind) {
		return nil
	}
	event := eventOf(s.node, e)
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
	if err != nil {
		return fmt.Errorf("encoding an event of Node %q: %w", s.node, err)
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	_, err = s.client.Resource(events).Namespace(EventNamespace).Create(ctx, &unstructured.Unstructured{Object: body}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		if coreErr := s.createCore(ctx, coreOf(event)); !apierrors.IsForbidden(coreErr) {
			err = coreErr
		}
	}
	switch {
	case err == nil:
		klog.FromContext(ctx).V(2).Info("Sent event", "node", s.node, "reason", event.Reason, "entry", e.N)
		return nil
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		klog.FromContext(ctx).Error(err, "Event was refused and is left out", "node", s.node, "reason", event.Reason, "entry", e.N)
		return nil
	default:
		return fmt.Errorf("creating an event of Node %q: %w", s.node, kube.Classified(err))
	}
}

// createCore creates an event in the core group.
func (s *EventSender) createCore(ctx context.Context, event *corev1.Event) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	namespace := s.client.Resource(coreEvents).Namespace(EventNamespace)
	_, err = namespace.Create(ctx, &unstructured.Unstructured{Object: body}, metav1.CreateOptions{})
	return err
}

// coreOf converts an event to the core group. The API server stores both forms as one object, under one name.
func coreOf(e *eventsv1.Event) *corev1.Event {
	return &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Event"},
		ObjectMeta: e.ObjectMeta, EventTime: e.EventTime, InvolvedObject: e.Regarding, Related: e.Related,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Action: e.Action, Reason: e.Reason, Type: e.Type, Message: e.Note,
	}
}

// EventRules are the rights that [EventSender] needs, for a Role in [EventNamespace]. A kubelet's own credentials have them. RBAC can't tell
// whom an event is about: who has them may say anything about any node.
func EventRules() []rbacv1.PolicyRule {
	verbs := []string{"create"}
	return []rbacv1.PolicyRule{{APIGroups: []string{events.Group}, Resources: []string{events.Resource}, Verbs: verbs}}
}

// told reports whether people get to know of such an entry.
func told(k history.Kind) bool {
	return k != history.Started && k != history.Freed && k != history.Forgotten
}

// eventOf is pure. The Node is named as kubelets do it, by its name as UID, so that nothing has to be read.
func eventOf(node string, e history.Entry) *eventsv1.Event {
	kind := corev1.EventTypeNormal
	if e.Kind.Urgent() {
		kind = corev1.EventTypeWarning
	}
	event := &eventsv1.Event{
		TypeMeta:            metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"},
		ObjectMeta:          metav1.ObjectMeta{Name: eventName(node, e), Namespace: EventNamespace},
		EventTime:           metav1.NewMicroTime(e.At),
		ReportingController: EventController, ReportingInstance: clipText(node, maxInstance),
		Action: EventAction, Reason: EventReasonPrefix + string(e.Kind), Type: kind,
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)},
		Note:      clipText(noteOf(e), maxNote),
	}
	if c := e.Config; c != (history.Config{}) {
		event.Related = &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: c.Namespace, Name: c.Name, UID: types.UID(c.UID)}
	}
	return event
}

// noteOf is for people.
func noteOf(e history.Entry) string {
	note := e.Config.String()
	if e.Why != "" {
		note += ": " + e.Why
	}
	return note
}

// eventName is that of the entry. A journal that was lost begins to count anew, but at another time.
func eventName(node string, e history.Entry) string {
	sum := sha256.Sum256([]byte(strconv.Quote(node) + strconv.Quote(string(e.Kind)) + strconv.FormatUint(e.N, 10) + e.At.UTC().String()))
	return "belay-config." + hex.EncodeToString(sum[:16])
}
