# frozen_string_literal: true

# Client of a postrider server: see Postrider::Client, Postrider::Webhooks and README.md.
module Postrider
  autoload :DeliveryMethod, File.join(__dir__, "postrider/delivery_method")
end

require_relative "postrider/version"
require_relative "postrider/errors"
require_relative "postrider/webhook_event"
require_relative "postrider/events"
require_relative "postrider/webhooks"
require_relative "postrider/webhook_endpoint"
require_relative "postrider/client"
require_relative "postrider/railtie" if defined?(Rails::Railtie)
