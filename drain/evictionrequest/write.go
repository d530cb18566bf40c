// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package evictionrequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/internal/evictionapi"
)

const maxName = 253

// errNotSeen means that the watch is late: the next pass sees more.
var errNotSeen = errors.New("an Eviction of this target exists already, which the watch has not shown yet")

// carryOut writes what was decided. It stops at the first error. Each write names the object's UID and
// resourceVersion, so that one which was decided on an old state is refused.
func (c *Controller) carryOut(ctx context.Context, target drain.PodRef, d decision) error {
	if d.create != nil {
		if err := c.createEviction(ctx, target, d); err != nil {
			return err
		}
	}
	for _, change := range d.labels {
		if err := patchObject(ctx, c.client, evictionapi.EvictionsResource(), change.to.ObjectMeta, map[string]any{
			"labels": change.to.Labels, "ownerReferences": change.to.OwnerReferences,
		}, nil); err != nil {
			return fmt.Errorf("labelling Eviction %q: %w", change.to.Name, err)
		}
	}
	for _, change := range d.statuses {
		status := statusPatch(change)
		if err := patchObject(ctx, c.client, evictionapi.EvictionsResource(), change.to.ObjectMeta, nil, status); err != nil {
			return fmt.Errorf("writing the status of Eviction %q: %w", change.to.Name, err)
		}
	}
	for _, r := range d.requests {
		if err := patchObject(ctx, c.client, evictionapi.RequestsResource(), r.ObjectMeta, nil, r.Status); err != nil {
			return fmt.Errorf("writing the status of EvictionRequest %q: %w", r.Name, err)
		}
	}
	for _, e := range d.remove {
		if err := c.removeEviction(ctx, e); err != nil {
			return fmt.Errorf("deleting Eviction %q: %w", e.Name, err)
		}
	}
	return nil
}

// statusPatch is the status of an Eviction without what its responders have written: the lists are merged by name.
func statusPatch(change evictionChange) map[string]any {
	to := change.to.Status
	old := newTurn(change.from.Status)
	var responders []evictionapi.ResponderStatus
	for _, r := range to.Responders {
		before, known := old.statuses[r.Name]
		if !known || before.StartTime == nil && r.StartTime != nil {
			responders = append(responders, r)
		}
	}
	var requesters []any
	for _, r := range to.Requesters {
		requesters = append(requesters, r)
	}
	for _, r := range change.from.Status.Requesters {
		if !slices.ContainsFunc(to.Requesters, func(kept evictionapi.Requester) bool { return kept.Name == r.Name }) {
			requesters = append(requesters, map[string]any{"$patch": "delete", "name": r.Name})
		}
	}
	patch := map[string]any{
		"conditions":       to.Conditions,
		"targetResponders": to.TargetResponders, "responders": responders, "requesters": requesters,
	}
	for field, value := range patch { // a null would delete the list
		if reflect.ValueOf(value).Len() == 0 {
			delete(patch, field)
		}
	}
	patch["observedGeneration"] = to.ObservedGeneration
	return patch
}

// patchObject sends a strategic merge patch: of the status if there is one, and of the metadata otherwise. Lists are
// merged by their keys, and what a newer server keeps besides stays.
func patchObject(
	ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, object metav1.ObjectMeta,
	metadata map[string]any, status any,
) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields := map[string]any{"uid": object.UID}
	if object.ResourceVersion != "" {
		fields["resourceVersion"] = object.ResourceVersion
	}
	for name, value := range metadata {
		fields[name] = value
	}
	patch := map[string]any{"metadata": fields}
	var subresources []string
	if status != nil {
		patch["status"], subresources = status, []string{"status"}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(object.Namespace).
		Patch(ctx, object.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, subresources...)
	if apierrors.IsNotFound(err) {
		return nil // deleted meanwhile: its event begins the next pass
	}
	return err
}

var namePattern = regexp.MustCompile(`^pod-([1-9][0-9]{0,8})-`)

// counterOf is the counter in the name of an Eviction, or 0.
func counterOf(e *evictionapi.Eviction) int {
	m := namePattern.FindStringSubmatch(e.Name)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}

func nameOf(counter int, pod string) string {
	name := fmt.Sprintf("pod-%d-%s", counter, pod)
	return strings.TrimRight(name[:min(len(name), maxName)], ".-") // a name ends with a letter or a digit
}

// createEviction creates an Eviction under the first name of the form pod-1-web that no other target has. The name is
// the same for every process that creates it, so that two of them, or one that is killed and begins again, make one.
func (c *Controller) createEviction(ctx context.Context, target drain.PodRef, d decision) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	e, counter := d.create, 1
	for _, old := range d.known { // not those of the watch by now: the name says what was decided on
		counter = max(counter, counterOf(old)+1)
	}
	resource := c.client.Resource(evictionapi.EvictionsResource()).Namespace(target.Namespace)
	for ; ; counter++ {
		e.Name = nameOf(counter, target.Name)
		u, err := evictionapi.EncodeEviction(e)
		if err != nil {
			return err
		}
		_, err = resource.Create(ctx, u, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating Eviction %q: %w", e.Name, err)
		}
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.created[target] = types.NamespacedName{Namespace: target.Namespace, Name: e.Name}
			return nil
		}
		found, err := resource.Get(ctx, e.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading Eviction %q: %w", e.Name, err)
		}
		if of, ok := evictionTarget(found); ok && of == target {
			return errNotSeen
		}
	}
}

// removeEviction deletes an Eviction whose requests are all gone, unless it has changed.
func (c *Controller) removeEviction(ctx context.Context, e *evictionapi.Eviction) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := c.client.Resource(evictionapi.EvictionsResource()).Namespace(e.Namespace).
		Delete(ctx, e.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: &e.UID, ResourceVersion: &e.ResourceVersion,
		}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
