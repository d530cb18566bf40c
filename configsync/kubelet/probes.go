// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/internal/option"
)

// A finding is the answer of a probe that does not pass: one sentence.
type finding struct {
	text      string
	is        error  // configsync.ErrBelow or ErrUndecided; nil for a plain failure
	signature string // of an end of the kubelet for this reason
}

// Error is the sentence.
func (f *finding) Error() string { return f.text }

// Is reports whether the finding is of that kind.
func (f *finding) Is(kind error) bool { return f.is != nil && kind == f.is }

func newFailure(format string, args ...any) error {
	return &finding{text: fmt.Sprintf(format, args...)}
}

// NewProbes returns the probes of a node, all of which must pass before a config is promoted:
//
//   - node-ready: the Node is Ready by a report newer than the one before the config was adopted, and under no
//     pressure that it was not under before.
//   - heartbeat: the API server has had a heartbeat, by the node's Lease or in its Ready condition, since the kubelet
//     was started.
//   - pods: the pods that were ready before are ready, and of each DaemonSet that had a ready pod on the node one is.
//     A pod that was deleted, has ended by itself, or was evicted over a limit of its own, does not count. One that the
//     kubelet has refused, or evicted for the node's sake, in this run of the config does. One that any restart of a
//     kubelet can end (UnexpectedAdmissionError, NodeAffinity) does where three pods and half of all are lost.
//   - kubelet-api: the kubelet's own API answers over TLS, if it did before. No credentials are sent: a refusal is an
//     answer. Where the caller need not be known, a failed check of /healthz, such as that of the sync loop, fails.
//   - runtime and host: what the Witness looks at. Their failure lies below every config.
//
// The first three read the API server with client: the Node, its Lease in kube-node-lease, and the pods of the node,
// from the API server's memory, at each look of a trial and at no other time; see [ProbeRules]. Where the API server
// does not answer, or refuses, they can't tell: the trial stands still. The error is a *belay.OptionError.
func NewProbes(client dynamic.Interface, node string, w *Witness) ([]configsync.Probe, error) {
	check := option.For("configsync/kubelet.NewProbes", nil)
	check.Require("client", client, "see NewClient of configsync/kube")
	check.Require("node", node, "the name of the node")
	check.Require("witness", w, "see NewWitness")
	if w != nil && len(w.subject.Command) == 0 {
		check.Wrong("the witness is a zero value (see NewWitness)")
	}
	if err := check.Err(); err != nil {
		return nil, err
	}
	v := &nodeView{client: client, name: node}
	return []configsync.Probe{
		hostProbe{w}, runtimeProbe{w}, apiProbe{&w.subject},
		&readyProbe{view: v}, &heartbeatProbe{view: v, pid: w.subject.PID}, &podsProbe{view: v},
	}, nil
}

// ProbeRules are the rights that the probes of [NewProbes] need at the API server: cluster for a ClusterRole, lease
// for a Role in the namespace kube-node-lease. The certificate of a kubelet has them for its own node. RBAC can't
// narrow a list of pods to those of one node.
func ProbeRules(node string) (cluster, lease []rbacv1.PolicyRule) {
	cluster = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}, ResourceNames: []string{node}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}
	lease = []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"},
			ResourceNames: []string{node}},
	}
	return cluster, lease
}

// hostProbe asks for disks and program.
type hostProbe struct{ w *Witness }

// Name implements configsync.Probe.
func (hostProbe) Name() string { return "host" }

// Check implements configsync.Probe.
func (p hostProbe) Check(ctx context.Context) error { return p.w.checkHost(ctx) }

// runtimeProbe asks the container runtime.
type runtimeProbe struct{ w *Witness }

// Name implements configsync.Probe.
func (runtimeProbe) Name() string { return "runtime" }

// Check implements configsync.Probe.
func (p runtimeProbe) Check(ctx context.Context) error { return p.w.checkRuntime(ctx) }

// apiProbe asks the kubelet's own API.
type apiProbe struct{ s *Subject }

// maxHealthz bounds what is read of an answer, in bytes.
const maxHealthz = 4 << 10

// What the API was like before.
const (
	apiAnswered = "answered"
	apiSilent   = "silent"
)

// Name implements configsync.Probe.
func (apiProbe) Name() string { return "kubelet-api" }

// Check implements configsync.Probe. A config that switches the API off says so on purpose.
func (p apiProbe) Check(ctx context.Context) error {
	if _, on := p.s.servingAddress(); !on {
		return nil
	}
	return p.askAPI(ctx)
}

// TakeBaseline says whether the API answers.
func (p apiProbe) TakeBaseline(ctx context.Context) ([]byte, error) {
	if p.askAPI(ctx) != nil {
		return []byte(apiSilent), nil
	}
	return []byte(apiAnswered), nil
}

// Compare is Check, and refuses that an API which has answered is switched off. One that was silent before need not
// answer.
func (p apiProbe) Compare(ctx context.Context, baseline []byte, _ bool) error {
	hostPort, on := p.s.servingAddress()
	switch {
	case string(baseline) == apiSilent:
		return nil
	case !on:
		return newFailure("the kubelet's API at %s answered before, and the config switches it off (enableServer: false)",
			hostPort)
	}
	return p.askAPI(ctx)
}

func (p apiProbe) askAPI(ctx context.Context) error {
	hostPort, _ := p.s.servingAddress()
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext,
			// The certificate is the kubelet's own, often self-signed. Nothing secret is sent, and nothing that comes back is
			// used.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+hostPort+"/healthz", nil)
	if err != nil {
		return newFailure("the kubelet's API can't be asked at %s: %v", hostPort, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return newFailure("the kubelet's API does not answer at https://%s: %v", hostPort, innermostError(err))
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxHealthz)) // what can't be read says nothing
	if resp.StatusCode == http.StatusInternalServerError && bytes.Contains(body, []byte("check failed")) {
		return newFailure("the kubelet's API at https://%s/healthz answers %d: %s", hostPort, resp.StatusCode,
			clipMessage(failedChecks(body)))
	}
	return nil // a refusal, or trouble in asking the API server about the caller, comes from an API that serves
}

// failedChecks are the lines of an answer that name a check which fails.
func failedChecks(body []byte) string {
	var failed []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimSpace(line))
		}
	}
	return strings.Join(failed, ", ")
}

// innermostError leaves out the addresses, which differ at each look.
func innermostError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

var (
	nodesResource  = corev1.SchemeGroupVersion.WithResource("nodes")
	podsResource   = corev1.SchemeGroupVersion.WithResource("pods")
	leasesResource = coordinationv1.SchemeGroupVersion.WithResource("leases")
)

// viewTTL is for how long the probes of one round share an answer about the Node.
const viewTTL = time.Second

// A nodeView reads one node at the API server, from the API server's memory.
type nodeView struct {
	client dynamic.Interface
	name   string

	mu   sync.Mutex
	at   time.Time // monotonic
	node *corev1.Node
	err  error
}

// readNode returns the Node, at most [viewTTL] old, or the error of reading it. Nil without an error means that there
// is none.
func (v *nodeView) readNode(ctx context.Context) (*corev1.Node, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.at.IsZero() && time.Since(v.at) < viewTTL {
		return v.node, v.err
	}
	var node corev1.Node
	found, err := v.getObject(ctx, v.client.Resource(nodesResource), "the Node", &node)
	v.node, v.err, v.at = nil, err, time.Now()
	if found {
		v.node = &node
	}
	return v.node, v.err
}

// readLease returns the node's Lease, or nil if there is none.
func (v *nodeView) readLease(ctx context.Context) (*coordinationv1.Lease, error) {
	var lease coordinationv1.Lease
	found, err := v.getObject(ctx, v.client.Resource(leasesResource).Namespace(corev1.NamespaceNodeLease),
		"the node's Lease",
		&lease)
	if !found {
		return nil, err
	}
	return &lease, nil
}

func (v *nodeView) getObject(ctx context.Context, from dynamic.ResourceInterface, what string, into any) (found bool,
	err error) {
	object, err := from.Get(ctx, v.name, metav1.GetOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err == nil:
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
	}
	if err != nil {
		return false, newUnknown(what, err)
	}
	return true, nil
}

// readPods returns the pods of the node.
func (v *nodeView) readPods(ctx context.Context) ([]podState, error) {
	v.mu.Lock()
	err := v.err
	fresh := time.Since(v.at) < viewTTL
	v.mu.Unlock()
	if err != nil && fresh {
		return nil, err // the API server did not answer a moment ago
	}
	list, err := v.client.Resource(podsResource).List(ctx, metav1.ListOptions{
		ResourceVersion: "0", FieldSelector: fields.OneTermEqualSelector("spec.nodeName", v.name).String(),
	})
	if err != nil {
		return nil, newUnknown("the pods of the node", err)
	}
	pods := make([]podState, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, podStateOf(&list.Items[i]))
	}
	return pods, nil
}

// newUnknown is the answer of a probe that can't tell.
func newUnknown(what string, err error) error {
	text := fmt.Sprintf("the API server did not give %s: %v", what, err)
	if apierrors.IsForbidden(err) {
		text += "; grant the rights of ProbeRules (examples/agent: or give --node-probes=false)"
	}
	return &finding{text: text, is: configsync.ErrUndecided}
}

// A podState is what the probes use of a pod.
type podState struct {
	uid, name string // name is namespace/name
	owner     podOwner
	phase     corev1.PodPhase
	reason    string // why it has failed, in a word, if the kubelet or the cluster says so
	message   string
	ready     bool
	deleted   bool
}

// podOwner is the controller of a pod, if it has one.
type podOwner struct{ kind, name string }

// podStateOf reads a pod without its spec.
func podStateOf(u *unstructured.Unstructured) podState {
	p := podState{
		uid: string(u.GetUID()), name: u.GetNamespace() + "/" + u.GetName(), deleted: u.GetDeletionTimestamp() != nil,
	}
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		p.owner = podOwner{owner.Kind, u.GetNamespace() + "/" + owner.Name}
	}
	// A field that is absent, or of another type, reads as empty.
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	p.phase = corev1.PodPhase(phase)
	p.reason, _, _ = unstructured.NestedString(u.Object, "status", "reason")
	p.message, _, _ = unstructured.NestedString(u.Object, "status", "message")
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(corev1.PodReady) {
			p.ready = c["status"] == string(corev1.ConditionTrue)
		}
	}
	return p
}

// isFinished reports whether the pod has ended.
func (p *podState) isFinished() bool {
	return p.phase == corev1.PodSucceeded || p.phase == corev1.PodFailed
}

// isCounted reports whether the pod runs and is ready.
func (p *podState) isCounted() bool { return !p.deleted && !p.isFinished() && p.ready }
