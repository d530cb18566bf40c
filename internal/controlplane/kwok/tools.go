// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

package kwok

// The tag keeps the import out of every ordinary build; go mod tidy reads it all the same.
import _ "sigs.k8s.io/kwok/cmd/kwok"
