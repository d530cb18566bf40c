// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package signed_test

import (
	"testing"

	"github.com/belayproject/belay/internal/mutate"
)

// The suite catches each of these.
func TestMutants(t *testing.T) {
	mutate.Sample(t, []mutate.Mutant{
		{Name: "signatures are not verified", File: "signed.go", Run: "TestOneGoodSignature",
			Old: "if ok && ed25519.Verify(key, message, s.sum) {", New: "if _ = message; ok && len(key) > 0 {"},
		{Name: "a nameless key is tried", File: "signed.go", Run: "TestOneGoodSignature",
			Old: "key, ok := k.byID[s.id]", New: "key, ok := k.byID[s.id]\n\t\tfor _, other := range k.byID {\n\t\t\tif ed25519.Verify(other, message, s.sum) {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t}"},
		{Name: "the entry signs itself", File: "signed.go", Run: "TestMessageIsStable",
			Old: "delete(rest, Entry)", New: ""},
		{Name: "signatures without a purpose", File: "signed.go", Run: "TestMessageIsStable",
			Old: "[]byte(purpose + ", New: "[]byte("},
		{Name: "any number of signatures", File: "signed.go", Run: "TestOneGoodSignature",
			Old: "case len(all) == MaxSignatures:", New: "case false:"},
		{Name: "others may write keys", File: "load.go", Run: "TestLoadIsAllOrNothing",
			Old: "info.Mode().Perm()&0o022 != 0", New: "info.Mode().Perm()&0o000 != 0"},
		{Name: "a file that is no key is left out", File: "load.go", Run: "TestLoadIsAllOrNothing",
			Old: "return nil, fmt.Errorf(\"file %q: %w\", filepath.Base(name), err)", New: "delete(keys, id)\n\t\t\t_ = filepath.Base(name)"},
	})
}
