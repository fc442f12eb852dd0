#include "parallel.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace nnsim {
namespace {

class Pool {
 public:
  using Body = std::function<void(size_t, size_t)>;

  static Pool& Get() {
    static Pool pool;
    return pool;
  }

  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  size_t size() const { return workers_.size() + 1; }

  // False when another thread has the pool.
  bool TryRun(size_t count, size_t piece, const Body& body) {
    std::unique_lock<std::mutex> owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return false;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      body_ = &body;
      count_ = count;
      piece_ = piece;
      next_ = 0;
      busy_ = workers_.size();
      ++round_;
    }
    wake_.notify_all();
    Work();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    return true;
  }

 private:
  Pool() {
    const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
    for (unsigned i = 1; i < cores; ++i) workers_.emplace_back([this] { Loop(); });
  }

  void Work() {
    for (;;) {
      size_t begin;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (next_ >= count_) return;
        begin = next_;
        next_ = std::min(count_, next_ + piece_);
      }
      (*body_)(begin, std::min(count_, begin + piece_));
    }
  }

  void Loop() {
    size_t seen = 0;
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
        if (stopping_) return;
        seen = round_;
      }
      Work();
      std::lock_guard<std::mutex> lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex owner_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const Body* body_ = nullptr;
  size_t count_ = 0, piece_ = 1, next_ = 0, busy_ = 0, round_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;  // last: starts only when the rest is there
};

}  // namespace

void ParallelFor(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body) {
  if (count == 0) return;
  Pool& pool = Pool::Get();
  // Four pieces a thread even out cores of unequal speed.
  const size_t piece = std::max<size_t>({grain, 1, count / (4 * pool.size())});
  if (piece >= count || !pool.TryRun(count, piece, body)) body(0, count);
}

}  // namespace nnsim
