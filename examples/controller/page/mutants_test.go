// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// Each way to show another fleet, to hold up readers, or to give away more, is noticed.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a suspect node is in flight", File: "kind.go", Run: "TestModel", Old: "if slot.State != \"\" || d.State", New: "if d.State"},
		{Name: "nodes of another rollout wait for their turn", File: "kind.go", Run: "TestOverlappingRollouts", Old: "		if slot == nil { //", New: "		if false { //"},
		{Name: "what is decided is so already", File: "kind.go", Run: "TestNodeThatIsNextWaits", Old: "v.Snapshot.Ledger.Slot(d.UID)", New: "v.Decisions.Ledger.Slot(d.UID)"},
		{Name: "all nodes are in the stage under way", File: "turns.go", Run: "TestModel", Old: "case !had || ended >= p.StageFrom:", New: "case !had || ended >= 0:"},
		{Name: "a name is a revision", File: "model.go", Run: "TestModel", Old: "want != \"\" && current.Digest != \"\" && want != current.Digest", New: "want == \"-\""},
		{Name: "to acknowledge takes no node", File: "model.go", Run: "TestModel|TestStory", Old: "if node == \"\" {", New: "if false {"},
		{Name: "what is gone stays", File: "diff.go", Run: "TestChangesAddUp", Old: "if _, still := b[key]; !still {", New: "if _, still := b[key]; !still && false {"},
		{Name: "a change changes the model before", File: "diff.go", Run: "TestChangesAddUp", Old: "Nodes: maps.Clone(m.Nodes)}", New: "Nodes: m.Nodes}"},
		{Name: "a slow reader gets the last change alone", File: "hub.go", Run: "TestSlowReader", Old: "case held.number+1 == v.number:", New: "case held.number+1 <= v.number:"},
		{Name: "models for nobody", File: "hub.go", Run: "TestNothingIsDoneForNobody", Old: "if !read || has && ", New: "if read && has && "},
		{Name: "an old model for who comes later", File: "hub.go", Run: "TestNothingIsDoneForNobody", Old: "\t\th.newest = nil\n", New: ""},
		{Name: "a model for each change", File: "hub.go", Run: "TestModelsAreNotMadeTooOften", Old: "\t\t\tchanged = true\n\t\t\tcontinue\n", New: "\t\t\tchanged = true\n"},
		{Name: "any number of readers", File: "hub.go", Run: "TestReadersAreBounded", Old: "if len(h.readers) >= h.o.Readers {", New: "if false {"},
		{Name: "readers never leave", File: "hub.go", Run: "TestReadersAreBounded", Old: "\tdelete(h.readers, wake)\n", New: "\t_ = wake\n"},
		{Name: "a write may take for ever", File: "stream.go", Run: "TestStuckReader", Old: "time.Now().Add(WriteTime)", New: "time.Time{}"},
		{Name: "the controller is never deaf", File: "stream.go", Run: "TestReadersHear", Old: "now.Sub(heard) > h.o.Silence", New: "false"},
		{Name: "a quiet cluster is silence", File: "hub.go", Run: "TestReadersHear", Old: "orElse(o.Silence, time.Minute)", New: "orElse(o.Silence, 15*time.Second)"},
		{Name: "the first beat comes late", File: "stream.go", Run: "TestReadersHear", Old: "err := s.beat(h, \"retry: 3000\\n\")", New: "err := s.send(\"retry: 3000\\n\\n\")"},
		{Name: "events are held back", File: "stream.go", Run: "TestEventsAreNotHeldBack", Old: "\tw.Header().Set(\"X-Accel-Buffering\", \"no\")", New: "\t_ = \"\""},
		{Name: "any host", File: "server.go", Run: "TestHostIsChecked", Old: "if !h.knows(r.Host) {", New: "if false {"},
		{Name: "the policy is not sent", File: "server.go", Run: "TestHeaders", Old: "\t\t\t\"Content-Security-Policy\":      policy,\n", New: ""},
		{Name: "any method", File: "server.go", Run: "TestMethods", Old: "mux.HandleFunc(\"GET /node\", h.node)", New: "mux.HandleFunc(\"/node\", h.node)"},
	})
}
