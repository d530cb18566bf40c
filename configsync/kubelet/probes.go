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

	rbacv1 "k8s.io/api/rbac/v1"
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
//     A pod that was deleted, or has ended by itself, does not count. One that the kubelet has evicted or refused
//     does. One that any restart of a kubelet can end (UnexpectedAdmissionError, NodeAffinity) does where half of all
//     pods are lost.
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
func (p hostProbe) Check(context.Context) error { return p.w.checkHost() }

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
