// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configsync "github.com/belayproject/belay/configsync/v1alpha1"
	"github.com/belayproject/belay/examples/internal/kubectl-belay/report"
	"github.com/belayproject/belay/rollout/v1alpha1"
)

// hostile is what somebody writes who has the token of a node: he clears the screen, fakes a line, and turns the rest around.
const hostile = "ok\n\x1b[2J\x1b[HWhy  all is well\u009b8m\u202etxt\tx\r"

// possess has a node say it wherever it can say anything.
func possess(sh *v1alpha1.NodeShadow) {
	ref := &v1alpha1.RevisionRef{Name: hostile, Digest: hostile}
	s := &sh.Status
	s.Current, s.Previous, s.Staged, s.Revision = ref, ref, ref, ref
	s.Phase, s.Reason, s.Message, s.BootID = hostile, hostile, hostile, hostile
	said := []metav1.Condition{{Type: hostile, Status: hostile, Reason: hostile, Message: hostile, LastTransitionTime: at(0)}}
	config := &configsync.Config{Display: hostile}
	s.Conditions = said
	s.Config = &configsync.NodeConfigStatus{
		Active: config, Assigned: config, LastKnownGood: config, Conditions: said, Error: hostile, Alarm: hostile,
		Rejected: []configsync.RejectedConfig{{ResolvedConfigMapRef: configsync.ResolvedConfigMapRef{Namespace: hostile, Name: hostile}, Reason: hostile, Time: at(0)}},
	}
}

// S-CS-11: what a node writes about itself can't act on an operator's terminal, nor fake a line of a report.
func TestAReportHoldsNoControlCharacters(t *testing.T) {
	s := seen(t)
	possess(&s.Shadows[2])
	n := s.Nodes[2]
	n.Status.Conditions[0].Reason, n.Status.Conditions[0].Message, n.Status.Conditions[0].Status = hostile, hostile, "False"
	r := &s.Rollouts[0]
	r.Status.Reason, r.Status.Message, r.Status.Refusal, r.Status.HandledRequest = hostile, hostile, hostile, "pause-1"
	r.Status.Nodes = append(r.Status.Nodes, v1alpha1.NodeReason{Node: "node-05", State: hostile, Reason: hostile, Message: hostile})
	verb := v1alpha1.Verb{Request: "pause-1", Do: "Pause"}
	r.Spec.Verb = &verb
	st := report.StatusOf(r, nil, now())
	text := report.WhyOf(s, "node-02", s.Rollouts).Text() + "\n---\n" + st.Text() + "\n---\n" + st.Line() + "\n---\n" +
		report.Overview([]report.Status{st}) + "\n---\n" + report.AnswerOf(r, r, verb, now()).Text() + "\n---\n" +
		report.Difference{From: hostile, To: hostile, Unread: []string{hostile}}.Text()
	check(t, "hostile.txt", text)
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("the report holds %q", r)
		}
	}
}
