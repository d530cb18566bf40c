// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package exec_test

import (
	"strings"
	"testing"

	"github.com/belayproject/belay/machine/provider"
	"github.com/belayproject/belay/machine/provider/exec"
)

// Whatever a program writes is an instance of the token that was asked for, or an error with a class and without the secret.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"instance":{"token":"a-1","state":"Running","providerID":"x:///a-1"}}`), []byte(""), 0)
	f.Add([]byte(`{"error":{"class":"Stockout","message":"the s3cr3t-value","afterSeconds":1e99}}`), []byte(""), 1)
	f.Add([]byte(`{"instance":`), []byte("s3cr3t-value"), 3)
	f.Add([]byte(`{"instance":{"token":"b-1"}} {}`), []byte("\xff s3cr3t-values3cr3t-value"), 0)
	f.Fuzz(func(t *testing.T, out, stderr []byte, code int) {
		i, err := exec.Judge(code, out, stderr, "a-1", map[string][]byte{"k": []byte("s3cr3t-value")})
		if err == nil && (i.Token != "a-1" || code != 0 || strings.Contains(i.Message, "s3cr3t-value")) {
			t.Errorf("got %+v with exit code %d", i, code)
		}
		if err != nil && (provider.ClassOf(err) == "" || strings.Contains(err.Error(), "s3cr3t-value") || len(err.Error()) > 5000 || provider.AfterOf(err) < 0) {
			t.Errorf("got %v", err)
		}
	})
}

// No part of a secret that was cut off at the beginning is left, and none that is whole.
func FuzzScrubTail(f *testing.F) {
	f.Add("tail-of-a-secret", "a-secret", 5)
	f.Add("aaaaaaa", "aaaa", 3)
	f.Fuzz(func(t *testing.T, text, secret string, cut int) {
		if len(secret) < 8 || cut <= 0 || cut >= len(secret) || strings.Contains(secret, "[") || strings.Contains("[secret]", secret) {
			return
		}
		got := exec.ScrubTail(secret[cut:]+"|"+text, map[string][]byte{"k": []byte(secret)})
		if len(secret)-cut >= 4 && strings.HasPrefix(got, secret[cut:]) && !strings.HasPrefix(text, secret) {
			t.Errorf("%q begins with the end of %q", got, secret)
		}
	})
}
