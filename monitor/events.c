/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "monitor/events.h"

const QmpEvent qmp_events[] = {
    {"BLOCK_IO_ERROR",
     {{"qom-path", QMP_STRING, true},
      {"device", QMP_STRING},
      {"node-name", QMP_STRING, true},
      {"operation", QMP_STRING},
      {"action", QMP_STRING},
      {"nospace", QMP_BOOL, true},
      {"reason", QMP_STRING}}},
    {"BLOCK_WRITE_THRESHOLD",
     {{"node-name", QMP_STRING}, {"amount-exceeded", QMP_INT}, {"write-threshold", QMP_INT}}},
    {"DEVICE_DELETED", {{"device", QMP_STRING, true}, {"path", QMP_STRING}}},
    {"DEVICE_TRAY_MOVED", {{"device", QMP_STRING}, {"id", QMP_STRING}, {"tray-open", QMP_BOOL}}},
    {"RESET", {{"guest", QMP_BOOL}, {"reason", QMP_STRING}}},
    {"RESUME", {{NULL}}},
    {"SHUTDOWN", {{"guest", QMP_BOOL}, {"reason", QMP_STRING}}},
    {"SPINDLE_EJECT_REQUEST", {{"device", QMP_STRING}, {"id", QMP_STRING}}},
    {"SPINDLE_MEDIUM_CHANGED",
     {{"device", QMP_STRING},
      {"id", QMP_STRING},
      {"medium-present", QMP_BOOL},
      {"node-name", QMP_STRING, true},
      {"size", QMP_INT, true}}},
    {"STOP", {{NULL}}},
    {NULL},
};
