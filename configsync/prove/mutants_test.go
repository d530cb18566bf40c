// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches each of these.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "any failure refuses", File: "run.go", Run: "TestExitStatusIsTheAnswer",
			Old: "case Refusal:", New: "case Refusal, 1, 2, 127:"},
		{Name: "a signal accepts", File: "run.go", Run: "TestExitStatusIsTheAnswer",
			Old: "e.Err = errKilled\n\t\treturn result{}, e", New: "r.Verdict = accepted"},
		{Name: "a refusal accepts", File: "run.go", Run: "TestExitStatusIsTheAnswer",
			Old: "r.Verdict = refused", New: "r.Verdict = accepted"},
		{Name: "others may write the program", File: "run.go", Run: "TestProgramThatCantBeTrusted",
			Old: "info.Mode().Perm()&0o022 != 0", New: "info.Mode().Perm()&0o000 != 0"},
		{Name: "what a killed agent left is in the way", File: "run.go", Run: "TestProgramGetsThePayload",
			Old: "if err := removed(file); err != nil {\n\t\treturn err\n\t}\n\tf, err", New: "f, err"},
		{Name: "the file stays", File: "run.go", Run: "TestProgramGetsThePayload",
			Old: "errors.Join(err, removed(file))", New: "err"},
		{Name: "the file is for all", File: "run.go", Run: "TestProgramGetsThePayload",
			Old: "os.O_EXCL, 0o600)", New: "os.O_EXCL, 0o644)"},
		{Name: "any directory will do", File: "run.go", Run: "TestDirectoryOfThePayload",
			Old: "info.Mode().Perm()&0o077 != 0", New: "info.Mode().Perm()&0o000 != 0"},
		{Name: "links are followed", File: "run.go", Run: "TestDirectoryOfThePayload",
			Old: "os.Lstat(dir)", New: "os.Stat(dir)"},
		{Name: "the environment is inherited", File: "run.go", Run: "TestEnvironmentIsLocal",
			Old: "s.Digest}, p.o.Env...)", New: "s.Digest}, append(os.Environ(), p.o.Env...)...)"},
		{Name: "no limit of time", File: "run.go", Run: "TestHangIsKilled",
			Old: "context.WithTimeoutCause(ctx, p.o.Timeout, errSlow)", New: "context.WithTimeoutCause(ctx, 1000*p.o.Timeout, errSlow)"},
		{Name: "the program alone is killed", File: "group.go", Run: "TestGroupEnds",
			Old: "syscall.Kill(-g.pid,", New: "syscall.Kill(g.pid,"},
		{Name: "what is left goes on", File: "group.go", Run: "TestGroupEnds",
			Old: "g.kill()\n\t\tg.is(0)", New: "g.is(0)"},
		{Name: "output is always shown", File: "run.go", Run: "TestErrorsHoldNoOutput",
			Old: "if p.o.ShowOutput {", New: "if true {"},
		{Name: "output is shown as it is", File: "error.go", Run: "TestErrorsHoldNoOutput",
			Old: "if r == unicode.ReplacementChar || !unicode.IsPrint(r) {", New: "if r == unicode.ReplacementChar {"},
		{Name: "all output is shown", File: "error.go", Run: "TestErrorsHoldNoOutput",
			Old: "t.kept = t.kept[max(0, len(t.kept)-MaxShown):]", New: ""},
		{Name: "answers are never looked up", File: "prove.go", Run: "TestAnswerOutlives",
			Old: "if !known {", New: "if _ = known; true {"},
		{Name: "answers are of any version", File: "prove.go", Run: "TestAnswerOutlives",
			Old: "subject{Version: p.o.Version,", New: "subject{"},
		{Name: "answers are of any program", File: "prove.go", Run: "TestAnswerOutlives",
			Old: "Setup: p.setup, ", New: ""},
		{Name: "answers are of any object", File: "prove.go", Run: "TestAnswerOutlives",
			Old: "Digest: o.Digest(), ", New: ""},
		{Name: "answers are of any payload", File: "prove.go", Run: "TestPayloadMayBeMadeOfLayers",
			Old: ", Payload: hex.EncodeToString(sum[:])}", New: ", Payload: hex.EncodeToString(sum[:0])}"},
		{Name: "answers are given before they are on record", File: "prove.go", Run: "TestAnswerIsOnRecord",
			Old: "if err := p.save(ctx); err != nil {", New: "if err := p.save(ctx); err != nil && false {"},
		{Name: "sums are not looked at", File: "record.go", Run: "TestPlantedAnswer",
			Old: "return hmac.Equal([]byte(r.sum(secret)), []byte(r.Sum)) &&", New: "return"},
		{Name: "sums are without the secret", File: "record.go", Run: "TestPlantedAnswer",
			Old: "hmac.New(sha256.New, secret)", New: "hmac.New(sha256.New, secret[:0])"},
		{Name: "sums are without the verdict", File: "record.go", Run: "TestPlantedAnswer",
			Old: " string(r.Verdict),", New: ""},
		{Name: "sums are without the version", File: "record.go", Run: "TestPlantedAnswer",
			Old: "[]string{r.Version, ", New: "[]string{"},
		{Name: "later formats are read", File: "record.go", Run: "TestPlantedAnswer",
			Old: "|| r.Format != format", New: "|| r.Format < format"},
		{Name: "the newest answers go first", File: "record.go", Run: "TestAnswersAreBounded",
			Old: "all[max(0, len(all)-MaxAnswers):]", New: "all[:min(len(all), MaxAnswers)]"},
	})
}
