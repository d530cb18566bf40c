// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/drain/kube"
)

// responders are those that can be asked, by name: the pods themselves, over their annotations, those of the
// EvictionRequest API unless pods are deleted without an eviction, and the program's own.
func (c *cluster) responders(config *rest.Config, timeout time.Duration, n needs) (map[string]drain.Responder, error) {
	pods, err := kube.NewAnnotationResponder(c.clientset, c.cache, kube.Options{})
	if err != nil {
		return nil, err
	}
	names := n.responders
	if n.release != "" {
		names = asked(c.cache, n.release)
	}
	known := map[string]drain.Responder{}
	for _, name := range names {
		known[name] = pods
	}
	if !n.deletes {
		requester, err := kube.NewEvictionRequester(config, nil, kube.Options{Timeout: timeout})
		if err != nil {
			return nil, err
		}
		known["EvictionRequest"] = requester
	}
	maps.Copy(known, n.own)
	return known, nil
}

// asked names the responders that a holder has asked pods for, so that nobody has to name them again for the request to be taken back.
func asked(cache drain.Cache, holder string) []string {
	var names []string
	for _, node := range cache.Nodes() {
		for _, pod := range cache.Pods(node.Name) {
			var request struct{ Holder, Responder string }
			value := pod.Annotations[kube.RequestAnnotation]
			if value == "" || json.Unmarshal([]byte(value), &request) != nil || request.Holder != holder || request.Responder == "" {
				continue
			}
			if !slices.Contains(names, request.Responder) {
				names = append(names, request.Responder)
			}
		}
	}
	return names
}
