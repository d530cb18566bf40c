// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeagent

// HookError is the error of a hook that failed, by which the tests of this package see what it wrote.
type HookError = hookError

// ErrOtherNode is the error of a shadow that is not for this Node.
var ErrOtherNode = errOtherNode
