// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"os"
	"testing"

	"github.com/belayproject/belay/internal/testenv"
)

// audited is the group of users whose requests are in the audit log.
const audited = "members"

var shared = testenv.Shared{Options: testenv.Options{AuditPolicy: `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [` + audited + `]
- level: None
`}}

func TestMain(m *testing.M) {
	if task := os.Getenv(childEnv); task != "" {
		os.Exit(childMain(task))
	}
	os.Exit(shared.Main(m))
}
