// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec

import "github.com/belayproject/belay/machine/provider"

// Judge is what Create makes of what a program has said.
func Judge(code int, out, stderr []byte, token string, secret map[string][]byte) (provider.Instance, error) {
	said := &tail{limit: maxStderr}
	_, _ = said.Write(stderr) // never fails
	r, err := judge(code, out, said, secretsOf([]map[string][]byte{secret}))
	if err != nil || r.Instance == nil {
		return provider.Instance{}, named(verbCreate, token, orNone(err))
	}
	return *r.Instance, checkInstance(*r.Instance, token)
}

func orNone(err error) error {
	if err == nil {
		return provider.Errorf(provider.Internal, "the reply has no instance")
	}
	return err
}

// ScrubTail is what is left of the end of a text.
func ScrubTail(text string, secret map[string][]byte) string {
	return secretsOf([]map[string][]byte{secret}).scrubTail(text)
}
