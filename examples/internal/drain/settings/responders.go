// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/belayproject/belay/drain"
)

// Responders says for which names pods may wait before they are evicted.
type Responders struct {
	// Known are asked by annotations of the pod.
	Known []string
}

// AddFlags adds the flag.
func (r *Responders) AddFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&r.Known, "responder", nil, "`NAME` of a responder in the annotation "+drain.HookAnnotation+" of pods: these are asked, by an "+
		"annotation too, to evacuate themselves before they are evicted; without it they alone stay; may be repeated")
}

func (r *Responders) validate(p *problems) {
	for _, name := range r.Known {
		p.need(name != "" && name == strings.TrimSpace(name), "responder", name,
			"must be a name as in the annotation "+drain.HookAnnotation+" of the pods, such as migrate")
	}
}
