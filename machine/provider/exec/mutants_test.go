// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package exec_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The tests catch providers that are broken in any of these ways.
func TestMutants(t *testing.T) {
	if os.Getenv("BELAY_MUTANTS") == "" {
		t.Skip("the tests of real processes take half a minute for each mutant: make mutants, or BELAY_MUTANTS=all")
	}
	mutate.Sample(t, []mutate.Mutant{
		{Name: "a reply about another token", File: "exec.go", Run: "TestRepliesAreJudged", Old: "case i.Token != token || ", New: "case "},
		{Name: "a ProviderID of another token", File: "exec.go", Run: "TestRepliesAreJudged", Old: `case i.ProviderID != "" && `, New: `case i.ProviderID == "" && `},
		{Name: "any state", File: "exec.go", Run: "TestRepliesAreJudged", Old: "case !slices.Contains(states(), i.State):", New: `case i.State == "":`},
		{Name: "instances of other clusters", File: "exec.go", Run: "TestOtherRepliesAreJudged", Old: "if i.Owner.Cluster != s.Cluster {", New: `if i.Owner.Cluster == "" {`},
		{Name: "the exit code says nothing", File: "call.go", Run: "TestRepliesAreJudged", Old: "\tcase code != 0:\n", New: "\tcase code != 0 && err != nil:\n"},
		{Name: "the exit code says more than the error", File: "call.go", Run: "TestRepliesAreJudged", Old: "case err == nil && r.Error != nil:", New: "case err == nil && r.Error != nil && code == 0:"},
		{Name: "classes of its own", File: "protocol.go", Run: "TestRepliesAreJudged", Old: "\t\tclass = provider.Internal\n", New: "\t\t_ = class\n"},
		{Name: "what comes after the reply", File: "protocol.go", Run: "TestRepliesAreJudged", Old: "!errors.Is(err, io.EOF) {", New: "err != nil && !errors.Is(err, io.EOF) {"},
		{Name: "nothing is a list", File: "protocol.go", Run: "TestRepliesAreJudged", Old: "err != nil || object == nil {", New: "err != nil {"},
		{Name: "not after anything", File: "protocol.go", Run: "TestAfter", Old: "\tif f.AfterSeconds > 0 {", New: "\tif f.AfterSeconds > 1e9 {"},
		{Name: "after for ever", File: "protocol.go", Run: "TestAfter", Old: "min(maxAfter, time.Duration(min(f.AfterSeconds, maxAfter.Seconds())*", New: "max(0, time.Duration(f.AfterSeconds*"},
		{Name: "errors say secrets", File: "protocol.go", Run: "TestSecretsAreHidden", Old: "clip(hide.scrub(f.Message))", New: "clip(f.Message)"},
		{Name: "standard error says secrets", File: "call.go", Run: "TestSecretsAreHidden", Old: "\t\ttext = hide.scrubTail(text)\n", New: "\t\ttext = text[1:]\n"},
		{Name: "half of a secret", File: "call.go", Run: "TestSecretIsCut", Old: "\t\ttext = hide.scrubTail(text)\n", New: "\t\ttext = hide.scrub(text)\n"},
		{Name: "secrets as they are", File: "secrets.go", Run: "TestSecretsAreHidden", Old: "hex.EncodeToString(v), strings", New: "string(v), strings"},
		{Name: "lines of a secret", File: "secrets.go", Run: "TestSecretsAreHidden", Old: "len(line) >= 16 {", New: "len(line) >= 1600 {"},
		{Name: "the process alone is killed", File: "group_unix.go", Run: "TestProgramIsKilled", Old: "syscall.Kill(-g.pid", New: "syscall.Kill(g.pid"},
		{Name: "ctx is not heard", File: "group_unix.go", Run: "TestOutputIsBounded", Old: "context.AfterFunc(ctx, g.kill)", New: "context.AfterFunc(context.WithoutCancel(ctx), g.kill)"},
		{Name: "no limit of time", File: "call.go", Run: "TestProgramIsKilled", Old: "context.WithTimeout(ctx, p.o.Timeout)", New: "context.WithTimeout(ctx, 20*p.o.Timeout)"},
		{Name: "no limit of output", File: "call.go", Run: "TestOutputIsBounded", Old: "\t\tc.over()\n", New: "\t\t_ = c\n"},
		{Name: "called for nothing", File: "call.go", Run: "TestProgramIsKilled", Old: "if err := ctx.Err(); err != nil {\n\t\treturn reply{}, provider.Errorf(provider.Unavailable, \"the program was not called",
			New: "if err := ctx.Err(); err != nil && verb == \"\" {\n\t\treturn reply{}, provider.Errorf(provider.Unavailable, \"the program was not called"},
		{Name: "the environment of the parent", File: "call.go", Run: "TestServeOfLittle|TestSecretsAreHidden", Old: "p.o.Env, bytes.NewReader(in)", New: "nil, bytes.NewReader(in)"},
		{Name: "any protocol", File: "exec.go", Run: "TestAbilities", Old: "if r.Protocol != Protocol {", New: "if r.Protocol == 0 {"},
		{Name: "create alone", File: "exec.go", Run: "TestAbilities", Old: "range []string{verbCreate, verbDelete} {", New: "range []string{verbCreate} {"},
		{Name: "stop alone is power", File: "exec.go", Run: "TestAbilities", Old: "if p.has(verbStop) && p.has(verbReboot) {", New: "if p.has(verbStop) {"},
		{Name: "verbs that it has not", File: "exec.go", Run: "TestAbilities", Old: "if err == nil && !p.has(verbGet) {", New: "if err == nil && verbGet == \"\" {"},
		{Name: "done and not stopped", File: "exec.go", Run: "TestOtherRepliesAreJudged", Old: "progress.Stopped = progress.Stopped || progress.Done", New: "progress.Stopped = progress.Stopped && progress.Done"},
		{Name: "no mode is no mode", File: "exec.go", Run: "TestOtherRepliesAreJudged", Old: "cmp.Or(r.Mode, provider.Retain)", New: "r.Mode"},
		{Name: "more than was asked for", File: "able.go", Run: "TestOtherRepliesAreJudged", Old: "r.Console[max(0, len(r.Console)-limit):]", New: "r.Console[max(0, min(0, limit)):]"},
	})
}
