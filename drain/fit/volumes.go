// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A volumeNeed is what a volume of the replacement asks of a Node: to match a PersistentVolume, or the topologies of
// the class that will provision one.
type volumeNeed struct {
	volume *corev1.PersistentVolume
	class  *storagev1.StorageClass
}

// noProvisioner is the provisioner of classes for which volumes are made by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// collectVolumes resolves the volumes of the pod, and notes which of them it can't.
func (f *filter) collectVolumes() {
	for i := range f.pod.Spec.Volumes {
		v := &f.pod.Spec.Volumes[i]
		switch {
		case v.Ephemeral != nil: // the claim goes with the pod; the replacement gets a new one
			if template := v.Ephemeral.VolumeClaimTemplate; template != nil {
				f.addClass(v.Name, &template.Spec)
			}
		case v.PersistentVolumeClaim != nil:
			key := types.NamespacedName{Namespace: f.pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}
			f.addClaim(v.Name, f.Claims[key], key.Name)
		}
	}
}

func (f *filter) addClaim(name string, claim *corev1.PersistentVolumeClaim, claimName string) {
	switch {
	case claim == nil:
		f.noteUnchecked("volume %s: the claim %s is not known", name, claimName)
	case claim.Spec.VolumeName == "":
		f.addClass(name, &claim.Spec)
	case f.Volumes[claim.Spec.VolumeName] == nil:
		f.noteUnchecked("volume %s: the PersistentVolume %s is not known", name, claim.Spec.VolumeName)
	default:
		f.volumes = append(f.volumes, volumeNeed{volume: f.Volumes[claim.Spec.VolumeName]})
	}
}

// addClass is for a claim that has no volume yet.
func (f *filter) addClass(name string, claim *corev1.PersistentVolumeClaimSpec) {
	if claim.StorageClassName == nil || *claim.StorageClassName == "" {
		f.noteUnchecked("volume %s: which class provisions it", name)
		return
	}
	class := f.Classes[*claim.StorageClassName]
	switch {
	case class == nil:
		f.noteUnchecked("volume %s: the StorageClass %s is not known", name, *claim.StorageClassName)
	case class.Provisioner == noProvisioner:
		f.noteUnchecked("volume %s: whether a PersistentVolume is left for it", name)
	default:
		f.volumes = append(f.volumes, volumeNeed{class: class})
	}
}

// checkVolumes looks at where the volumes can be used.
func checkVolumes(f *filter, n *nodeState) string {
	for _, need := range f.volumes {
		if need.class != nil {
			if !matchesTopologies(need.class.AllowedTopologies, n.node) {
				return "node(s) didn't find available persistent volumes to bind"
			}
			continue
		}
		if a := need.volume.Spec.NodeAffinity; a != nil && !matchesNodeSelector(a.Required, n.node) {
			return "node(s) didn't match PersistentVolume's node affinity"
		}
	}
	for _, need := range f.volumes {
		if need.volume != nil && !matchesZoneLabels(need.volume, n.node) {
			return "node(s) had no available volume zone"
		}
	}
	return ""
}

// matchesTopologies reports whether one of the terms matches; without terms every Node does.
func matchesTopologies(terms []corev1.TopologySelectorTerm, node *corev1.Node) bool {
	if len(terms) == 0 {
		return true
	}
	return slices.ContainsFunc(terms, func(term corev1.TopologySelectorTerm) bool {
		return len(term.MatchLabelExpressions) > 0 && !slices.ContainsFunc(term.MatchLabelExpressions,
			func(r corev1.TopologySelectorLabelRequirement) bool {
				value, ok := node.Labels[r.Key]
				return !ok || !slices.Contains(r.Values, value)
			})
	})
}

// zoneLabels are the labels of volumes that say where they are; those of old volumes after those of today.
var zoneLabels = map[string]string{
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelTopologyRegion: corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// matchesZoneLabels compares the zone and region labels of a volume with those of a Node. A Node without any is in a
// cluster of one zone.
func matchesZoneLabels(volume *corev1.PersistentVolume, node *corev1.Node) bool {
	hasZone := false
	for label := range zoneLabels {
		_, ok := node.Labels[label]
		hasZone = hasZone || ok
	}
	if !hasZone {
		return true
	}
	for label, today := range zoneLabels {
		zones, ok := volume.Labels[label]
		if !ok {
			continue
		}
		value, ok := node.Labels[label]
		if !ok {
			value, ok = node.Labels[today]
		}
		if !ok || !slices.Contains(strings.Split(zones, "__"), value) {
			return false
		}
	}
	return true
}
