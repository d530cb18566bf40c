// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxToken is the length of a DNS label and of a label's value: a token can be the name of most things.
const maxToken = 63

// Token returns the token of one incarnation of a machine: "<8 hex of cluster>-<16 hex of uid>-<incarnation>", of their SHA-256. The same machine has
// the same token in every process, and no two have one in common.
func Token(cluster, uid string, incarnation int64) string {
	return fmt.Sprintf("%s-%s-%d", short(cluster, 8), short(uid, 16), incarnation)
}

func short(s string, digits int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:digits]
}

// ProviderID returns "scheme:///zone/token", as Node.spec.providerID has it; without a zone "scheme:///token". A zone may have several segments.
func ProviderID(scheme, zone, token string) string { //nolint:revive // it is what the API calls a ProviderID
	if zone == "" {
		return scheme + ":///" + token
	}
	return scheme + ":///" + zone + "/" + token
}

// TokenOf returns the token in a ProviderID, its last path segment. It is "" for what is no ProviderID, as a text without "://", and for a
// segment that [CheckToken] refuses.
func TokenOf(providerID string) string {
	_, path, found := strings.Cut(providerID, "://")
	slash := strings.LastIndexByte(path, '/')
	if !found || slash < 0 {
		return ""
	}
	if token := path[slash+1:]; CheckToken(token) == nil {
		return token
	}
	return ""
}

// CheckToken returns an [InvalidConfig] error for what can be no token: it has 1 to 63 lower case letters, digits and dashes, and begins and ends
// with no dash.
func CheckToken(token string) error {
	if token == "" || len(token) > maxToken {
		return Errorf(InvalidConfig, "token %.80q has %d bytes: want 1 to %d", token, len(token), maxToken)
	}
	for i := range len(token) {
		c := token[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return Errorf(InvalidConfig, "token %q has %q at byte %d: want lower case letters, digits and dashes", token, c, i)
		}
	}
	if token[0] == '-' || token[len(token)-1] == '-' {
		return Errorf(InvalidConfig, "token %q begins or ends with a dash: want a letter or a digit there", token)
	}
	return nil
}
