// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// A Cache is the Drainer's view of the cluster: local copies, never a request. Package drain/kube has one over shared informers,
// draintest one in memory. Objects that it returns are shared and must not be changed. It may be late, but at the first pass of a process it
// has to show the Nodes as they were when the process began: a set takes its word for which nodes an earlier process has begun, and so
// for how many more it may.
type Cache interface {
	// Node returns the Node of that name, or nil.
	Node(name string) *corev1.Node
	// Nodes returns every Node that the cache knows.
	Nodes() []*corev1.Node
	// Pods returns the pods bound to a node, in any order.
	Pods(node string) []*corev1.Pod
	// Pod returns the pod of that name, or nil.
	Pod(namespace, name string) *corev1.Pod
	// Budgets returns the PodDisruptionBudgets of a namespace.
	Budgets(namespace string) []*policyv1.PodDisruptionBudget
	// Watch calls changed, until stop is called, with what has changed since. It may be called from any goroutine, must not block, and
	// may repeat itself.
	Watch(changed func(Change)) (stop func())
	// Check returns nil while the other methods return what the cluster has, late at most, and otherwise says why they do not: the cache has
	// not synced, its watch is refused, or a read behind one of the methods has failed. It makes no request. While it returns an error the
	// Drainer begins no drain, evicts nothing and plans nothing: an empty answer of such a cache is not an empty node.
	Check() error
}

// A VolumeCache is a [Cache] that also knows volumes. The volume stage and [Policy].Removal need it.
type VolumeCache interface {
	Attachments(node string) []*storagev1.VolumeAttachment
	Claim(namespace, name string) *corev1.PersistentVolumeClaim
	Volume(name string) *corev1.PersistentVolume
}

// An OwnerCache is a [Cache] that also knows DaemonSets. Without it every pod of a DaemonSet counts as wanted.
type OwnerCache interface {
	DaemonSet(namespace, name string) (uid types.UID, ok bool)
}

// A NamespaceCache is a [Cache] that also knows namespaces. Rules with a NamespaceSelector need it.
type NamespaceCache interface {
	// FindNamespace returns the namespace of that name, or nil. If known is false, the cache does not watch namespaces.
	FindNamespace(name string) (namespace *corev1.Namespace, known bool)
}

// A Change names one thing that has changed: a node, by the name, which stands also for its pods and attachments; or a budget.
type Change struct {
	Node   string
	Budget types.NamespacedName
}

// A Client sends the Drainer's requests. Each call has a deadline of its own, and none is repeated by the client: the Drainer decides
// when to ask again. Package drain/kube has one, draintest another.
type Client interface {
	// Evict posts a policy/v1 eviction with the UID as precondition.
	Evict(ctx context.Context, pod PodRef, gracePeriodSeconds *int64) error
	// Delete deletes the pod with the UID as precondition.
	Delete(ctx context.Context, pod PodRef, gracePeriodSeconds *int64) error
	// PatchNode sends a JSON merge patch, to the status subresource if status is true, and returns the Node as it is then.
	PatchNode(ctx context.Context, name string, patch []byte, status bool) (*corev1.Node, error)
	// GetNode reads a Node, consistently: what was written before the call is in the answer. One that is not there is a NotFound error.
	GetNode(ctx context.Context, name string) (*corev1.Node, error)
	// ListPods reads the pods of a node, consistently: what was bound before the call is in the answer.
	ListPods(ctx context.Context, node string) ([]*corev1.Pod, error)
}

// errNoNode means that a Client has broken its promise. Taken for an answer, it would read as a Node with nothing on
// it.
var errNoNode = errors.New("the Client returned neither a Node nor an error")

// A strictClient is a Client that returns a Node or an error.
type strictClient struct{ Client }

// GetNode is as in [Client].
func (c strictClient) GetNode(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := c.Client.GetNode(ctx, name)
	return node, checkAnswer(node, err)
}

// PatchNode is as in [Client].
func (c strictClient) PatchNode(ctx context.Context, name string, patch []byte, status bool) (*corev1.Node, error) {
	node, err := c.Client.PatchNode(ctx, name, patch, status)
	return node, checkAnswer(node, err)
}

func checkAnswer(node *corev1.Node, err error) error {
	if err == nil && node == nil {
		return errNoNode
	}
	return err
}

// A LeaseKeeper renews the Lease of a node in place of its kubelet. [Hold] needs it.
type LeaseKeeper interface {
	// Renew sets the renew time of the node's Lease, unless somebody else has renewed it since the last call, which it then leaves.
	Renew(ctx context.Context, node string) error
}

// A Responder evacuates a pod in a way of its own before it is evicted, for example by migrating a virtual machine. It has the
// shape of KEP-4563: one responder at a time, a sign of life within a deadline, and eviction when it is done, declines or falls silent.
type Responder interface {
	// Respond asks for the evacuation, or asks how it goes; calling it again changes nothing. It returns at once.
	Respond(ctx context.Context, request HookRequest) (HookAnswer, error)
	// Cancel takes the request back. Calling it for one that is not there is no error: a process that releases a drain of another one calls it
	// for every pod on the node that the responder may have been asked about.
	Cancel(ctx context.Context, request HookRequest) error
}

// A PodResponder is a [Responder] that finds its pods by itself: no rule and no annotation has to name it. The pods
// that it finds wait for it, unless a rule with a Behavior matches them or the policy ignores what pods say. It is asked
// when nothing but a pod's budget keeps the pod on the node. One that is silent for 25 minutes, or for the Deadline of
// the pod's rule, is given up. Package drain/kube has one.
type PodResponder interface {
	Responder
	// FindPods returns the UIDs of those pods that wait for this responder. It may be called in each pass over the node.
	// After an error nothing is evicted in that pass.
	FindPods(ctx context.Context, node string, pods []PodRef) (map[types.UID]bool, error)
}

// A HookRequest asks a responder to evacuate a pod.
type HookRequest struct {
	Pod         PodRef
	Node        string
	Holder      string
	Maintenance string
	Responder   string
}

// A HookAnswer is what a responder says.
type HookAnswer struct {
	Progress HookProgress
	// Beat changes whenever the responder gives a sign of life: a counter, a time, any string. Only the change counts, and when the
	// Drainer sees it, so that nobody's clock is compared.
	Beat    string
	Message string
	// Since is when the request was first made, where that is on record: before the process began, for example. The
	// steps of the escalation count from it. Zero means the first call of Respond in this process.
	Since time.Time
}

// A HookProgress is how far a responder has come.
type HookProgress string

// The progress of a responder.
const (
	HookAsked    HookProgress = "Asked"    // has not answered yet
	HookWorking  HookProgress = "Working"  // is at it
	HookDone     HookProgress = "Done"     // what is left of the pod may be evicted
	HookDeclined HookProgress = "Declined" // will not do it: the next responder is asked, or the pod is evicted
)

// A HookState is what the Drainer has seen of a pod's responders.
type HookState struct {
	Responder string       // the one that answered last
	Progress  HookProgress // its answer
	Message   string
	LastBeat  time.Time // when its sign of life last changed, or it was first asked, by the Drainer's clock
	Since     time.Time // when it was first asked
}

// A Recorder takes events. The recorder of k8s.io/client-go/tools/events is one. A note has at most 1,024 bytes, which
// the API server takes: a longer message is cut.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Metrics has a function for each thing that can be counted; those that are nil are not called. They must not block.
type Metrics struct {
	// Phase is called when a node changes its phase. An empty from is a node that this process has not told of before, an empty to one
	// of which it knows no more: the sum of the calls is the number of nodes in each phase.
	Phase func(from, to Phase)
	// Blocked reports, after each pass, how many pods of a node are held up for each reason, and since when the oldest is.
	Blocked func(node string, byReason map[Reason]int, oldest time.Time)
	// Eviction is called for each answer of the server, with the HTTP status code (0 when there was no answer) and how long it took.
	Eviction func(outcome Verdict, code int, took time.Duration)
	// Pass is called after each pass.
	Pass func(took time.Duration)
}
