// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/belayproject/belay/drain"
)

// A CoreRecorder writes events of the core API: the EventRecorder of k8s.io/client-go/tools/record, which
// GetEventRecorderFor of a controller-runtime manager returns.
type CoreRecorder interface {
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
}

// NewCoreRecorder makes a [drain.Recorder] of a recorder for events of the core API, which have neither an action nor a
// related object. A recorder of k8s.io/client-go/tools/events is a [drain.Recorder] as it is. Without a recorder it
// returns nil, which records nothing.
func NewCoreRecorder(recorder CoreRecorder) drain.Recorder {
	if recorder == nil {
		return nil
	}
	return coreRecorder{recorder}
}

type coreRecorder struct{ to CoreRecorder }

func (r coreRecorder) Eventf(regarding, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	r.to.Eventf(regarding, eventtype, reason, note, args...)
}
