// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/belayproject/belay/rollout/protocol"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// Where the API server keeps what the auditor reads.
const (
	ledgersIn  = "/registry/belay.dev/disruptionledgers/"
	shadowsIn  = "/registry/belay.dev/nodeshadows/"
	rolloutsIn = "/registry/belay.dev/rollouts/"
	nodesIn    = "/registry/minions/"

	// One watch has all of them, so that their versions come in the order in which they were written. Between the two lie also other kinds, which are passed over.
	auditedFrom, auditedTo = "/registry/belay.dev/", "/registry/minions0"
)

// An auditor checks every version of the ledger, of the Nodes and of their shadows, each against what the others were at that moment. It knows fleets in which
// nobody deletes a shadow by hand and nobody gives a slot up.
type auditor struct {
	limit int

	mu                    sync.Mutex
	wrong                 []string
	versions, slots, most int // versions that were checked; slots and cordoned nodes at a time at most
	cordoned              map[string]bool
	attempts              map[string]int64            // by UID of the Node
	begun                 map[string]map[string]int64 // attempts by UID of the Node and revision
	commits               int
	revision              int64 // that was seen last, of whatever kind
	now                   protocol.Ledger
	nodes                 map[string]string          // UIDs of the Nodes that there are, by name
	shadows               map[string]protocol.Shadow // by name of the Node
	stopped               map[string]bool            // Rollouts, by UID, that have acknowledged that they are stopped
	lately                []string                   // what the last versions said, for a run that has failed
}

func newAuditor(limit int) *auditor {
	return &auditor{
		limit: limit, cordoned: map[string]bool{}, attempts: map[string]int64{}, begun: map[string]map[string]int64{},
		nodes: map[string]string{}, shadows: map[string]protocol.Shadow{}, stopped: map[string]bool{}}
}

// see checks one version.
func (a *auditor) see(v version) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision = v.Revision
	a.versions++
	var err error
	switch {
	case strings.HasPrefix(v.Key, rolloutsIn):
		err = a.rollout(v)
	case strings.HasPrefix(v.Key, ledgersIn):
		err = a.ledger(v)
	case strings.HasPrefix(v.Key, shadowsIn):
		err = a.shadow(v)
	case strings.HasPrefix(v.Key, nodesIn):
		err = a.node(v)
	default:
		a.versions--
	}
	if err != nil {
		a.fault("%s at %d can't be read: %v", v.Key, v.Revision, err)
	}
}

func (a *auditor) fault(format string, args ...any) {
	a.wrong = append(a.wrong, fmt.Sprintf(format, args...))
}

// tell remembers what a version says.
func (a *auditor) tell(v version, format string, args ...any) {
	const most = 200
	a.lately = append(a.lately[max(0, len(a.lately)-most):], fmt.Sprintf("%d %s: ", v.Revision, path.Base(v.Key))+fmt.Sprintf(format, args...))
}

// ledger: E21, no more slots than the cap allows; attempts are counted up; and what is freed or admitted may be.
func (a *auditor) ledger(v version) error {
	if v.Value == nil {
		a.fault("the ledger was deleted at %d", v.Revision)
		return nil
	}
	var l v1alpha1.DisruptionLedger
	if err := json.Unmarshal(v.Value, &l); err != nil {
		return err
	}
	before, now := a.now, v1alpha1.LedgerOf(l.Spec)
	if n := len(l.Spec.Slots); n > a.limit {
		a.fault("E21: the ledger at %d has %d slots, the cap is %d", v.Revision, n, a.limit)
	}
	if now.Epoch < before.Epoch {
		a.fault("I3: the ledger at %d goes back from attempt %d to %d", v.Revision, before.Epoch, now.Epoch)
	}
	a.tell(v, "%+v", now)
	a.freed(v, before, now)
	a.admitted(v, before, now)
	for uid := range a.stopped {
		if now.ClosedFor(uid) == nil {
			delete(a.stopped, uid)
		}
	}
	a.now, a.slots = now, max(a.slots, len(l.Spec.Slots))
	return nil
}

// node: E21, no more nodes are cordoned than the cap allows.
func (a *auditor) node(v version) error {
	name := path.Base(v.Key)
	if v.Value == nil {
		a.tell(v, "the Node is gone")
		delete(a.cordoned, name)
		delete(a.nodes, name)
		return nil
	}
	var n corev1.Node
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(v.Value, nil, &n); err != nil {
		return err
	}
	if a.nodes[name] != string(n.UID) || a.cordoned[name] != n.Spec.Unschedulable {
		a.tell(v, "the Node has UID %s, cordoned %t", n.UID, n.Spec.Unschedulable)
	}
	a.nodes[name] = string(n.UID)
	if !n.Spec.Unschedulable {
		delete(a.cordoned, name)
		return nil
	}
	a.cordoned[name] = true
	if a.most = max(a.most, len(a.cordoned)); len(a.cordoned) > a.limit {
		a.fault("E21: %d nodes are cordoned at %d, the cap is %d", len(a.cordoned), v.Revision, a.limit)
	}
	return nil
}

// shadow: I3, attempts never go back; E25, a node begins a revision once; and what it does is allowed.
func (a *auditor) shadow(v version) error {
	if v.Value == nil {
		a.tell(v, "the shadow is gone")
		delete(a.shadows, path.Base(v.Key))
		return nil
	}
	var sh v1alpha1.NodeShadow
	if err := json.Unmarshal(v.Value, &sh); err != nil {
		return err
	}
	a.tell(v, "%+v, %s %s", v1alpha1.ShadowOf(&sh), sh.Status.Reason, sh.Status.Message)
	a.allowed(v, a.shadows[sh.Name], v1alpha1.ShadowOf(&sh))
	a.shadows[sh.Name] = v1alpha1.ShadowOf(&sh)
	uid, last := sh.Spec.NodeUID, a.attempts[sh.Spec.NodeUID]
	switch is := sh.Status; {
	case is.Attempt < last && is.Known:
		a.fault("I3: the shadow of %s at %d goes back from attempt %d to %d", sh.Name, v.Revision, last, is.Attempt)
		return nil
	case is.Revision == nil || is.Phase == "Refused":
		return nil
	case is.Phase == "Undone": // it has not begun
		if a.begun[uid][is.Revision.Name] == is.Attempt {
			delete(a.begun[uid], is.Revision.Name)
		}
		return nil
	case is.Attempt == last:
		return nil
	}
	a.attempts[uid] = sh.Status.Attempt
	if a.begun[uid] == nil {
		a.begun[uid] = map[string]int64{}
	}
	a.commits++
	if before, again := a.begun[uid][sh.Status.Revision.Name]; again {
		a.fault("E25: node %s begins %s with attempt %d at %d, and has with attempt %d", sh.Name, sh.Status.Revision.Name, sh.Status.Attempt, v.Revision, before)
	}
	a.begun[uid][sh.Status.Revision.Name] = sh.Status.Attempt
	return nil
}

// at is the revision that was seen last.
func (a *auditor) at() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.revision
}

// slotted reports whether a node has a slot.
func (a *auditor) slotted(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now.Slot(a.nodes[node]) != nil
}

// last is what the last versions said, a line for each.
func (a *auditor) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.lately, "\n")
}

// report is what was found so far.
func (a *auditor) report() (wrong []string, versions, commits, slots, cordoned int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.wrong...), a.versions, a.commits, a.slots, a.most
}
