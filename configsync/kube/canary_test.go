// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/belayproject/belay/configsync"
	"github.com/belayproject/belay/configsync/kube"
	"github.com/belayproject/belay/configsync/kube/internal/matrix"
	"github.com/belayproject/belay/lkg"
)

// canary begins every secret of the inputs; what follows says which input it was.
const canary = "canary7f3a"

// verbosity is the highest that is meant for operation: from 8 on client-go itself logs the bodies of requests.
const verbosity = 7

// A caged is a payload with canaries in it, and other entries of its ConfigMap.
type caged struct {
	name, payload string
	others        map[string]string
	status        lkg.Status
}

// cages are configs that are taken, and ones that each part refuses which looks at a config, with canaries wherever no name is.
func cages() []caged {
	line := "payload: " + canary
	return []caged{
		{"good", line + "-good\n", map[string]string{"another": canary + "-entry"}, lkg.StatusTrue},
		{"unknown-field", line + "-a\nother: " + canary + "-b\n", nil, lkg.StatusFalse},
		{"wrong-type", "payload: [" + canary + "-list]\n", nil, lkg.StatusFalse},
		{"two-documents", line + "-a\n---\n" + line + "-b\n", nil, lkg.StatusFalse},
		{"alias", "payload: &" + canary + "-anchor " + canary + "\n", nil, lkg.StatusFalse},
		{"tag", "payload: !" + canary + "-tag " + canary + "\n", nil, lkg.StatusFalse},
		{"directive", "%" + canary + "-directive\n---\n" + line + "\n", nil, lkg.StatusFalse},
		{"not-closed", "payload: \"" + canary + "-open\n", nil, lkg.StatusFalse},
		{"tab", "payload:\n\t" + canary + "-tab\n", nil, lkg.StatusFalse},
		{"text", canary + "-text", nil, lkg.StatusFalse},
		{"json", `{"payload":"` + canary + `-json",`, nil, lkg.StatusFalse},
		{"binary", line + "\x00\x01" + canary + "-binary", nil, lkg.StatusFalse},
		{"invalid", "payload: " + string(matrix.Invalid) + " # " + canary + "-comment\n", nil, lkg.StatusFalse},
		{"limit", line + "\n", map[string]string{configsync.KeyTrialDuration: canary + "-soon"}, lkg.StatusFalse},
		{"threshold", line + "\n", map[string]string{configsync.KeyCrashLoopThreshold: canary + "-often"}, lkg.StatusFalse},
	}
}

// cage makes a ConfigMap of one, with canaries in its labels and annotations too.
func (c *cluster) cage(t *testing.T, p caged) matrix.Ref {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cage-" + p.name, Labels: map[string]string{"l": canary + "-label"}, Annotations: map[string]string{"a": canary + "-annotation"},
		},
		Immutable: ptr.To(true), Data: map[string]string{matrix.Key: p.payload}, BinaryData: map[string][]byte{"b": []byte(canary + "-bytes")},
	}
	for key, value := range p.others {
		cm.Data[key] = value
	}
	if p.status == lkg.StatusTrue {
		for key, value := range brief() {
			cm.Data[key] = value
		}
	}
	made, err := c.admin.CoreV1().ConfigMaps(c.namespace).Create(deadline(t), cm, metav1.CreateOptions{})
	must(t, err)
	return refTo(made)
}

// an aviary is a node whose inputs all have canaries in them, and what was said about it everywhere.
type aviary struct {
	*cluster
	*liveNode
	logger  klog.Logger
	options configsync.Options[entry]
	said    map[string]string // by output
}

func newAviary(t *testing.T, validator configsync.Validator[entry]) *aviary {
	t.Helper()
	t.Setenv("BELAY_CANARY", canary+"-environment")
	a := &aviary{cluster: newCluster(t), said: map[string]string{}}
	a.logger = ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(verbosity), ktesting.BufferLogs(true)))
	agent := rest.CopyConfig(a.agent)
	agent.BearerToken = canary + "-token" // beside the certificate, that the server takes
	a.client = clientFor(t, agent)
	must(t, a.assignNodeConfig(deadline(t), ""))
	source, err := kube.NewNodeConfigSource(a.client, a.node, kube.Options{})
	must(t, err)
	status, err := kube.NewStatusReporter(a.client, a.node, kube.Options{})
	must(t, err)
	condition, err := kube.NewNodeConditionReporter(a.client, a.node, kube.Options{})
	must(t, err)
	a.liveNode = a.liveWith(t, source, func(n *liveNode, o *configsync.Options[entry]) {
		n.base = klog.NewContext(t.Context(), a.logger)
		if validator != nil {
			o.Validators = append(o.Validators, validator)
		}
		a.options = *o
	}, logged{status, a.logger}, logged{condition, a.logger})
	return a
}

// logged is a reporter whose errors are logged, as a main would.
type logged struct {
	configsync.Reporter
	logger klog.Logger
}

// Report reports.
func (l logged) Report(ctx context.Context, s configsync.Status) error {
	err := l.Reporter.Report(ctx, s)
	if err != nil {
		l.logger.Error(err, "Reporting failed")
	}
	return err
}

// tell assigns a config and waits until the node has said of it what it should.
func (a *aviary) tell(t *testing.T, p caged) {
	t.Helper()
	ref := a.cage(t, p)
	must(t, a.assignNodeConfig(deadline(t), ref.Source()))
	eventually(t, "the word on "+p.name, func() error {
		s := a.report.Last()
		told := strings.Contains(s.Condition.Reason, ref.UID) || s.LastKnownGood.UID == ref.UID
		if s.Condition.Status != p.status || !told {
			return fmt.Errorf("condition %+v, error %q", s.Condition, s.Error)
		}
		return nil
	})
}

// collect gathers what can be heard of the node.
func (a *aviary) collect(t *testing.T) {
	t.Helper()
	keep := func(where string, what any) {
		raw, err := json.Marshal(what)
		must(t, err)
		a.said[where] += string(raw) + fmt.Sprintf("%+v", what)
	}
	keep("statuses", a.report.All())
	keep("status", a.syncer.Status())
	keep("NodeConfig", a.nodeConfig(t).Status)
	keep("condition", a.conditionOf(t))
	explained, err := configsync.Explain(deadline(t), a.disk, a.options)
	must(t, err)
	keep("explanation", explained)
	sink, ok := a.logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the log can't be read")
	}
	a.said["log"] = sink.GetBuffer().String()
}

// heard are the outputs in which there is a canary, with what stands around it.
func (a *aviary) heard() (where []string) {
	for output, text := range a.said {
		if i := strings.Index(text, canary); i >= 0 {
			where = append(where, fmt.Sprintf("%s: …%s…", output, text[max(0, i-80):min(len(text), i+80)]))
		}
	}
	return where
}

// TestNoCanaryIsHeard: a node with canaries in every input, in payloads that are taken and payloads that each part refuses, in the other entries,
// labels and annotations of their objects, in its token and its environment, says none of them: in no status, condition,
// explanation or line of the log. S-CS-07.
func TestNoCanaryIsHeard(t *testing.T) {
	a := newAviary(t, nil)
	for _, p := range cages() {
		a.tell(t, p)
	}
	a.collect(t)
	for _, h := range a.heard() {
		t.Errorf("S-CS-07: a canary is in %s", h)
	}
	for output, word := range map[string]string{"log": "Applied status", "statuses": "cage-good", "NodeConfig": "cage-good", "condition": "failed to load current", "explanation": "cage-good"} {
		if !strings.Contains(a.said[output], word) {
			t.Errorf("the output %q does not even say %q: %.200q", output, word, a.said[output])
		}
	}
}

// chatty is a validator that says what it saw.
type chatty struct{}

// Validate refuses with the value.
func (chatty) Validate(_ context.Context, e entry) error {
	if strings.HasPrefix(string(e.Payload), canary) {
		return errors.New("payload: " + string(e.Payload) + " is not good")
	}
	return nil
}

// TestCanaryIsHeardFromAChattyValidator shows that the search would find one: a validator of a user's own that says values is heard everywhere.
func TestCanaryIsHeardFromAChattyValidator(t *testing.T) {
	a := newAviary(t, chatty{})
	good := cages()[0]
	good.status = lkg.StatusFalse
	a.tell(t, good)
	eventually(t, "the reports", func() error {
		if a.collect(t); len(a.heard()) < 2 {
			return fmt.Errorf("a canary is in %q only", a.heard())
		}
		return nil
	})
}
