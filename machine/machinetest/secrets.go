// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package machinetest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belayproject/belay/machine/provider"
)

// join returns what instances get to join, with secrets that nobody else has.
func (s *suite) join() provider.Join {
	j := s.h.Join
	j.Bootstrap, j.Credentials = maps.Clone(j.Bootstrap), maps.Clone(j.Credentials)
	if j.Bootstrap == nil {
		j.Bootstrap = map[string][]byte{}
	}
	if j.Credentials == nil {
		j.Credentials = map[string][]byte{}
	}
	j.Bootstrap["canary"] = []byte("bootstrap-" + s.run)
	j.Credentials["canary"] = []byte("credentials-" + s.run)
	return j
}

// hide notes how the secrets would look where they must not be: as they are, in base64 as JSON has them, in hex, and as Go prints bytes.
func (s *suite) hide() {
	s.secrets = map[string]string{}
	j := s.join()
	for part, values := range map[string]map[string][]byte{"Bootstrap": j.Bootstrap, "Credentials": j.Credentials} {
		for key, v := range values {
			if len(v) < 8 { // such a short one may stand in a text by chance
				continue
			}
			name := fmt.Sprintf("%s[%q]", part, key)
			s.secrets[string(v)] = name
			s.secrets[base64.RawStdEncoding.EncodeToString(v)] = name
			s.secrets[base64.RawURLEncoding.EncodeToString(v)] = name
			s.secrets[hex.EncodeToString(v)] = name
			s.secrets[strings.Trim(fmt.Sprint(v), "[]")] = name
		}
	}
}

// see looks for secrets in what a call has returned. It may be called concurrently.
func (k *checker) see(call string, result any, err error) {
	text := fmt.Sprintf("%+v", result)
	if data, jsonErr := json.Marshal(result); jsonErr == nil {
		text += string(data)
	}
	what := "result"
	k.seek(call, what, text)
	if err != nil {
		k.seek(call, "error", err.Error())
	}
}

func (k *checker) seek(call, what, text string) {
	for secret, name := range k.secrets {
		if !strings.Contains(text, secret) {
			continue
		}
		k.suite.mu.Lock()
		leak := fmt.Sprintf("the %s of %s in rule %s holds %s", what, call, k.rule, name)
		if !slices.Contains(k.leaks, leak) {
			k.leaks = append(k.leaks, leak)
		}
		k.suite.mu.Unlock()
	}
}
