// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/belayproject/belay/internal/resourceversion"
)

var (
	// ErrFieldMissing means that an informer has a transform that drops what its consumer reads.
	ErrFieldMissing = errors.New("its transform drops a field that is read: keep that field")
	// ErrSelectsTooLittle means that an informer does not show everything.
	ErrSelectsTooLittle = errors.New("it selects too little: watch all namespaces, without a label or field selector")
)

// ErrBehind means that an informer lags behind the API server: no object could be compared, or it did not show all of
// them at any moment. Compare again.
var ErrBehind = errors.New("the informer has not come as far as the API server")

const (
	// sampleSize is how many objects of a kind are read from the server.
	sampleSize = 250
	// catchUpTime is how long the informer may take to show an object of the sample.
	catchUpTime = 400 * time.Millisecond
	// compareEvery is the pause between two comparisons.
	compareEvery = 50 * time.Millisecond
	// listTime bounds the read of a sample.
	listTime = 10 * time.Second
)

// A Field is one that the consumer of an informer reads, as one object has it.
type Field struct {
	Name  string
	Value any
}

// A Sample is a short list of the objects of one kind that the API server has, to be compared with what an informer
// shows of them.
type Sample struct {
	Resource string // the plural: "pods"
	Store    cache.Indexer
	// Informer fills the store.
	Informer Interface
	// AnyType says that Fields reads objects of each type that the server or the informer may have: typed or unstructured.
	AnyType bool
	// List reads a sample from the API server.
	List func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	// Fields returns what is read of an object, in the same order for each. Metadata that every consumer reads (UID,
	// resourceVersion, deletionTimestamp) need not be among them.
	Fields func(obj any) []Field
	// FieldMissing and SelectsTooLittle are wrapped by what is wrong; nil is [ErrFieldMissing] and
	// [ErrSelectsTooLittle].
	FieldMissing, SelectsTooLittle error
}

// Compare lists up to 250 objects from the API server and compares the informer with them, again and again for 400
// ms. wrong says what the informer drops or does not show. err says why there is no result: the list failed, or
// [ErrBehind]. Both are nil if all objects are equal, or if the informer showed them all and those of the same
// version are equal.
func (s Sample) Compare(ctx context.Context) (wrong, err error) {
	end := time.Now().Add(catchUpTime)
	for shownAll := false; ; {
		objects, more, err := s.readLive(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", s.Resource, err)
		}
		behind, coming, wrong := s.compareOnce(objects, more)
		shownAll = shownAll || wrong == nil && coming == 0
		if wrong == nil && behind == 0 {
			return nil, nil
		}
		if time.Now().After(end) {
			if wrong == nil && (!shownAll || behind == len(objects)) {
				return nil, fmt.Errorf("comparing %s: %w", s.Resource, ErrBehind)
			}
			return wrong, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), wrong)
		case <-time.After(compareEvery):
		}
	}
}

// readLive returns the objects of a sample, and how many there are beyond them where the server says so.
func (s Sample) readLive(ctx context.Context) (objects []runtime.Object, more int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	list, err := s.List(ctx, metav1.ListOptions{Limit: sampleSize})
	if err != nil {
		return nil, 0, err
	}
	if accessor, err := meta.ListAccessor(list); err == nil && accessor.GetRemainingItemCount() != nil {
		more = *accessor.GetRemainingItemCount()
	}
	objects, err = meta.ExtractList(list)
	return objects, more, err
}

// compareOnce returns how many objects of the sample cannot be compared yet (behind), how many of those the informer
// does not show yet (coming), and what is wrong: a field that is dropped, or else an object that is missing.
func (s Sample) compareOnce(objects []runtime.Object, more int64) (behind, coming int, wrong error) {
	tooLittle := s.SelectsTooLittle
	if tooLittle == nil {
		tooLittle = ErrSelectsTooLittle
	}
	shown := 0
	var missing string
	for _, live := range objects {
		key, err := cache.MetaNamespaceKeyFunc(live)
		if err != nil {
			return behind, coming, err
		}
		cached, ok, _ := s.Store.GetByKey(key) // a store in memory has no errors
		if !ok {
			if s.isBehind(live) {
				behind, coming = behind+1, coming+1
			} else {
				missing = key
			}
			continue
		}
		shown++
		same, err := s.compareObject(live, cached)
		if err != nil {
			return behind, coming, fmt.Errorf("%q: %w", key, err)
		}
		if !same {
			behind++
		}
	}
	if missing != "" {
		return behind, coming, fmt.Errorf("it shows %d of %d %s of the server, not %q: %w",
			shown, len(objects), s.Resource, missing, tooLittle)
	}
	total, have := int64(len(objects))+more, int64(len(s.Store.ListKeys())+coming)
	if have < total-total/10 { // the numbers of a busy cluster differ
		return behind, coming, fmt.Errorf("it shows %d of %d %s of the server: %w", have, total, s.Resource, tooLittle)
	}
	return behind, coming, nil
}

// isBehind reports whether the informer has not come as far as the last change of an object, where that is known:
// then it may still show an object that it does not show now.
func (s Sample) isBehind(live runtime.Object) bool {
	v, ok := s.Informer.(interface{ LastSyncResourceVersion() string })
	if !ok {
		return false
	}
	o, err := meta.Accessor(live)
	if err != nil {
		return false
	}
	order, err := resourceversion.Compare(v.LastSyncResourceVersion(), o.GetResourceVersion())
	return err == nil && order < 0
}

// compareObject returns an error for a field that the server has in this version of the object, and the cached object
// has not. same is false where the cached object is another version.
func (s Sample) compareObject(live runtime.Object, cached any) (same bool, err error) {
	fieldMissing := s.FieldMissing
	if fieldMissing == nil {
		fieldMissing = ErrFieldMissing
	}
	if want, got := fmt.Sprintf("%T", live), fmt.Sprintf("%T", cached); !s.AnyType && got != want && got != "*"+want {
		return true, fmt.Errorf("the informer holds %s, want %s: %w", got, want, fieldMissing)
	}
	liveMeta, err := meta.Accessor(live)
	if err != nil {
		return true, err
	}
	cachedMeta, err := meta.Accessor(cached)
	if err != nil {
		return true, err
	}
	if v := cachedMeta.GetResourceVersion(); v != "" && v != liveMeta.GetResourceVersion() {
		return false, nil
	}
	want := append(metadataFields(liveMeta), s.Fields(live)...)
	have := append(metadataFields(cachedMeta), s.Fields(cached)...)
	for i, f := range want {
		if i >= len(have) || !equality.Semantic.DeepEqual(f.Value, have[i].Value) {
			return true, fmt.Errorf("%s is not what the server has: %w", f.Name, fieldMissing)
		}
	}
	return true, nil
}

func metadataFields(o metav1.Object) []Field {
	return []Field{
		{"metadata.uid", o.GetUID()},
		{"metadata.resourceVersion", o.GetResourceVersion()},
		{"metadata.deletionTimestamp", o.GetDeletionTimestamp()},
	}
}
