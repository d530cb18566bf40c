// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch clouds that are broken in any of these ways.
func TestMutants(t *testing.T) { mutate.Sample(t, mutants) }

var mutants = []mutate.Mutant{
	{Name: "files are written in place", File: "files.go", Run: "TestConformance/UpdateSurvivesCrash",
		Old: "f.writeNew(path+unfinished, data); err != nil {\n\t\treturn err\n\t}\n\tif err := f.step(); err != nil {\n\t\treturn err\n\t}\n\tif err := os.Rename(path+unfinished, path); err != nil {",
		New: "f.writeNew(path, data); err != nil {"},
	{Name: "disks come after their instance", File: "store.go", Run: "TestConformance/CreateSurvivesCrash",
		Old: "if err := st.makeDisks(r, nil); err != nil {\n\t\treturn st.wrote(err, func() {})\n\t}\n\treturn st.put(r)",
		New: "if err := st.put(r); err != nil {\n\t\treturn err\n\t}\n\treturn st.wrote(st.makeDisks(r, nil), func() {})"},
	{Name: "two instances after half an adoption", File: "store.go", Run: "TestConformance/AdoptSurvivesCrash",
		Old: "st.instances[r.From]; there {", New: "st.instances[r.From]; there && old.Token == r.Token {"},
	{Name: "half a destruction is undone", File: "store.go", Run: "TestAllOrNothing",
		Old: "gone := st.used[token]; gone {", New: "gone := st.used[token]; gone && r.Token == \"\" {"},
	{Name: "disks of nobody stay", File: "store.go", Run: "TestUnfinishedFilesGo", Old: "if !owned[id] {", New: "if false {"},
	{Name: "a missing disk is not missed", File: "store.go", Run: "TestStrangeFiles",
		Old: "return fmt.Errorf(\"the file of disk %q is missing in %q\", id, st.files.dir)", New: "_ = id"},
	{Name: "a file of something else is taken", File: "store.go", Run: "TestStrangeFiles", Old: "if key(value) != name {", New: "if false {"},
	{Name: "tokens are used again", File: "store.go", Run: "TestConformance/UsedUpTokenIsConflict",
		Old: "_, is := st.used[token]\n\treturn is", New: "_, is := st.used[token]\n\treturn is && token == \"\""},
	{Name: "a write that failed is forgotten", File: "store.go", Run: "TestWriteFails",
		Old: "st.failed = errors.Join(st.failed, err)", New: "_ = errors.Join(st.failed, err)"},
	{Name: "time changes nothing", File: "store.go", Run: "TestDeleteTakesTime", Old: "if !ok || !r.due(now) {", New: "if !ok || r.due(now) || true {"},
	{Name: "groups are never full", File: "store.go", Run: "TestGroup", Old: "return size, n < size", New: "return size, n <= size+9"},
	{Name: "retained instances fill groups", File: "store.go", Run: "TestGroup", Old: "&& r.Phase != retained {", New: "{"},
	{Name: "readers see half an adoption", File: "store.go", Run: "TestAdopt$", Old: "\t\tdelete(st.instances, u.Token)\n\t})\n}\n\n// use uses", New: "\t})\n}\n\n// use uses"},

	{Name: "two servers", File: "lock_unix.go", Run: "TestOneServer", Old: "unix.LOCK_EX|unix.LOCK_NB", New: "unix.LOCK_SH|unix.LOCK_NB"},
	{Name: "what is unknown is let pass", File: "files.go", Run: "TestBadRequests", Old: "\td.DisallowUnknownFields()\n", New: ""},
	{Name: "what follows is let pass", File: "files.go", Run: "TestBadRequests", Old: "if _, err := d.Token(); !errors.Is(err, io.EOF) {", New: "if _, err := d.Token(); false {"},
	{Name: "requests have no limit", File: "wire.go", Run: "TestBadRequests", Old: "decode(http.MaxBytesReader(w, r.Body, maxRequest), into)", New: "decode(http.MaxBytesReader(w, r.Body, 9*maxRequest), into)"},
	{Name: "any 404 is NotFound", File: "wire.go", Run: "TestOtherServers",
		Old: "switch status {\n\t\tcase http.StatusUnauthorized", New: "switch status {\n\t\tcase http.StatusNotFound:\n\t\t\te.Class = provider.NotFound\n\t\tcase http.StatusUnauthorized"},
	{Name: "Retry-After is not read", File: "wire.go", Run: "TestRefusals", Old: "header.Get(\"Retry-After\")", New: "header.Get(\"Retry\")"},
	{Name: "secrets are sent", File: "client.go", Run: "TestSecretsAreNotSent", Old: "q.Request.Join = provider.Join{Endpoint: r.Join.Endpoint}", New: "q.Request.Join = r.Join"},
	{Name: "credentials are sent", File: "client.go", Run: "TestSecretsAreNotSent", Old: "\tr.Credentials = nil\n", New: ""},

	{Name: "another digest is no conflict", File: "instances.go", Run: "TestConformance/OtherDigestIsConflict", Old: "q.Request.Digest != r.Asked && q.Request.Digest != r.Digest:", New: "q.Request.Digest == \"\":"},
	{Name: "the digest that was updated to is a conflict", File: "instances.go", Run: "TestConformance/UpdateKeepsIdentity", Old: "q.Request.Digest != r.Asked && q.Request.Digest != r.Digest:", New: "q.Request.Digest != r.Asked:"},
	{Name: "the token of another cluster is taken", File: "instances.go", Run: "TestReferences", Old: "case there && r.Owner.Cluster != q.Request.Owner.Cluster:", New: "case there && r.Owner.Cluster == \"\":"},
	{Name: "a late Create leaks", File: "instances.go", Run: "TestLateCreate", Old: "return gone, s.store.use(token, q.Cluster)", New: "return gone, nil"},
	{Name: "any cluster deletes", File: "instances.go", Run: "TestConformance/DeleteInOtherClusterIsNotFound", Old: "case r.Owner.Cluster != q.Cluster:", New: "case false:"},
	{Name: "Destroy is the default", File: "instances.go", Run: "TestConformance/RetainIsTheDefault", Old: "q.Mode = provider.Retain\n", New: "q.Mode = provider.Destroy\n"},
	{Name: "List is of all clusters", File: "instances.go", Run: "TestConformance/ListIsOfOneCluster", Old: "return i.Owner.Cluster != scope.Cluster })", New: "return i.Owner.Cluster == \"\" })"},
	{Name: "what is half made has a ProviderID", File: "instances.go", Run: "TestPartial", Old: "r.Phase, r.Stuck, r.ProviderID = on, true, \"\"", New: "r.Phase, r.Stuck = on, true"},
	{Name: "what is half made runs", File: "instances.go", Run: "TestPartial", Old: "r.Phase, r.Stuck, r.ProviderID = on, true, \"\"", New: "r.Phase, r.ProviderID = on, \"\""},
	{Name: "the duplicate does not wait", File: "instances.go", Run: "TestDuplicateID", Old: "other != \"\" {", New: "other != \"\" || len(s.faults.list) > 0 {"},
	{Name: "an end that changes is not written", File: "instances.go", Run: "TestRetainedUntil", Old: " || !r.Until.Equal(was.Until) {", New: " {"},
	{Name: "a ProviderID that was kept is not found", File: "instances.go", Run: "TestAdopt$", Old: "if r.ProviderID == ref.ProviderID {", New: "if false {"},

	{Name: "faults are skipped for ever", File: "faults.go", Run: "TestRefusals", Old: "\t\t\tf.Skip--\n", New: ""},
	{Name: "faults do not end", File: "faults.go", Run: "TestRefusals", Old: "\t\tf.Count--\n", New: ""},
	{Name: "faults are for all methods", File: "faults.go", Run: "TestRefusals", Old: "f.Method != \"\" && f.Method != method ||", New: ""},
	{Name: "a stockout is everywhere", File: "faults.go", Run: "TestStockout", Old: "|| f.Zone != \"\" && f.Zone != zone {", New: "|| f.Zone == \"-\" {"},
	{Name: "a list is behind for ever", File: "faults.go", Run: "TestStaleList", Old: "f.Count == 0 || !f.ends.IsZero() && !now.Before(f.ends)", New: "f.Count == 0"},
	{Name: "who has left gets an instance", File: "server.go", Run: "TestLatency", Old: "case ctx.Err() != nil:\n\t\treturn ctx.Err()\n", New: ""},
	{Name: "a reply is lost with its effect", File: "server.go", Run: "TestLostReply", Old: "if err == nil {\n\t\t\ta, err = do(", New: "if err == nil && len(s.faults.list) == 0 {\n\t\t\ta, err = do("},
	{Name: "Close waits for a call that waits", File: "server.go", Run: "TestServerAlone", Old: "\t\tcase <-s.end:\n", New: ""},
	{Name: "calls are not counted", File: "server.go", Run: "TestCallsAreCounted", Old: "s.calls[method]++", New: "s.calls[method] = 1"},

	{Name: "it has stopped before it has", File: "record.go", Run: "TestDeleteTakesTime", Old: "provider.Progress{Stopped: !now.Before(r.Stopped)}", New: "provider.Progress{Stopped: now.Before(r.Stopped) || true}"},
	{Name: "Retain undoes Destroy", File: "record.go", Run: "TestDeleteTakesTime", Old: "if mode == provider.Destroy {\n\t\t\tr.Mode = mode\n", New: "if mode != \"\" {\n\t\t\tr.Mode = mode\n"},
	{Name: "Destroy is not heard", File: "record.go", Run: "TestDeleteTakesTime", Old: "if mode == provider.Destroy {\n\t\t\tr.Mode = mode\n", New: "if mode == \"\" {\n\t\t\tr.Mode = mode\n"},
	{Name: "what leaves is still updated", File: "record.go", Run: "TestUpdateOfWhatLeaves", Old: "\tr.Coming, r.Changed = nil, time.Time{}\n}\n\n// due", New: "}\n\n// due"},
	{Name: "what fails runs", File: "record.go", Run: "TestStarts", Old: "case r.Fails:", New: "case r.Fails && r.Stuck:"},
	{Name: "it runs at once", File: "record.go", Run: "TestStarts", Old: "case now.Before(r.Ready):", New: "case now.Before(r.Ready) && r.Stuck:"},
	{Name: "the console has no end", File: "record.go", Run: "TestConsole", Old: "r.Console[max(0, len(r.Console)-maxConsole):]", New: "r.Console[0:]"},

	{Name: "a reboot is repeated", File: "power.go", Run: "TestConformance/RebootOncePerID", Old: "case !slices.Contains(r.Reboots, q.ID):", New: "case q.ID != \"\":"},
	{Name: "the console knows no limit", File: "power.go", Run: "TestConformance/ConsoleIsBounded", Old: "text[max(0, len(text)-max(0, q.Limit)):]", New: "text[0:]"},
	{Name: "disks leave their zone", File: "power.go", Run: "TestAdopt$", Old: "r.Config.Zone != old.Config.Zone {", New: "r.Config.Zone == \"\" {"},
	{Name: "any adoption is mine", File: "power.go", Run: "TestAdopt$", Old: "case there && r.From != from:", New: "case there && r.From == \"-\":"},
	{Name: "what leaves is adopted", File: "power.go", Run: "TestAdopt$", Old: "case old.Phase == leaving:", New: "case old.Phase == \"\":"},
	{Name: "what is adopted begins empty", File: "power.go", Run: "TestConformance/AdoptBringsDisksBack", Old: "newDisks(r.Token, old.Disks, r.Config.Disks)", New: "newDisks(r.Token, nil, r.Config.Disks)"},

	{Name: "the last change decides", File: "updates.go", Run: "TestPlan$", Old: "how == provider.Unsupported || how == provider.Replace && p.Method == provider.InPlace {", New: "true {"},
	{Name: "what is lost is not said", File: "updates.go", Run: "TestPlan$", Old: "\t\tp.Lost = r.disks()\n", New: ""},
	{Name: "labels disturb", File: "updates.go", Run: "TestPlan$", Old: "|| what != \"node\" && what != \"roles\"", New: "|| what != \"\""},
	{Name: "taints are no change", File: "updates.go", Run: "TestPlan$", Old: "||\n\t\t\t!slices.Equal(a.Node.Taints, b.Node.Taints),", New: ","},
	{Name: "an update begins anew each time", File: "updates.go", Run: "TestUpdateTakesTime", Old: "case r.Coming == nil || r.Coming.Digest != q.Request.Digest:", New: "default:"},
	{Name: "an update can't be turned back", File: "updates.go", Run: "TestUpdateTakesTime", Old: "r.Digest == q.Request.Digest && r.Coming == nil {", New: "r.Digest == q.Request.Digest {"},
	{Name: "any plan is carried out", File: "updates.go", Run: "TestPlan$", Old: "case p.Method != provider.InPlace:", New: "case p.Method == \"\":"},
	{Name: "what was deleted is updated", File: "updates.go", Run: "TestNoPlanForWhatLeaves", Old: "case r.Phase == leaving || r.Phase == retained:", New: "case false:"},

	{Name: "any size", File: "config.go", Run: "TestBadConfigs", Old: "if sizes[c.Size] == nil {", New: "if c.Size == \"\" {"},
	{Name: "disks of one name", File: "config.go", Run: "TestBadConfigs", Old: "if seen[d.Name] {", New: "if false {"},
	{Name: "zones change in place", File: "config.go", Run: "TestBadConfigs", Old: "(what == \"zone\" || what == \"disks\"):", New: "what == \"disks\":"},
	{Name: "nobody joins", File: "config.go", Run: "TestHosts", Old: "c.Joins == nil || *c.Joins", New: "c.Joins != nil && *c.Joins"},
	{Name: "disks have no end", File: "admin_server.go", Run: "TestDisks", Old: "len(data) > maxData {", New: "len(data) > 9*maxData {"},
	{Name: "what is lost leaves its disks", File: "admin_server.go", Run: "TestLose", Old: "return nothing{}, s.store.destroy(rec)", New: "if err := s.store.use(rec.Token, \"\"); err != nil {\n\t\treturn nothing{}, err\n\t}\n\treturn nothing{}, s.store.forget(rec.Token)"},
}
