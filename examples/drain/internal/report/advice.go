// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/belayproject/belay/drain"

// advised adds to what is in a pod's way which flag of the command would let it go, where there is one.
func advised(message string, reason drain.Reason, hook string) string {
	advice := ""
	switch {
	case reason == drain.Unmanaged:
		advice = "--force evicts it"
	case reason == drain.LocalStorage:
		advice = "--delete-emptydir-data evicts it"
	case reason == drain.HeldByOtherRun:
		advice = "--take-over does that"
	case reason == drain.InvalidBehavior && hook != "":
		advice = "--responder=" + hook + " asks the pod to evacuate itself"
	}
	if message == "" || advice == "" {
		return message + advice
	}
	return message + "; " + advice
}
